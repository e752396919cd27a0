"""Files on disk: input streams, outputs that appear whole or not at all, and resumable parts of unfinished ones."""
