"""The same networks arranged for scoring and search."""
