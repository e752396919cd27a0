"""The file formats and programs of Moses."""
