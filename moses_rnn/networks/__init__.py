"""The published networks, one file each, and the code that they share for training, scoring and search."""
