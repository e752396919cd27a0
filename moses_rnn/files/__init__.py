"""Bytes on disks: streams in, outputs that appear whole or not at all, and the journal of an unfinished one."""
