"""A phrase table: its lines, what may be in them, and its signature."""
