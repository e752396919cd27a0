"""The commands: thin, and quick to answer --help (rooms that need torch are imported inside the command)."""
