"""Bytes on disks: streams in, outputs that appear whole or not at all, and what is kept of unfinished ones."""
