"""Phrase tables: their lines, what these may contain, and their signatures."""
