"""What Moses reads, writes and runs."""
