"""Scoring: read a table or an n-best list, and write the same lines with added scores."""
