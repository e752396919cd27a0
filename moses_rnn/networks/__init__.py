"""The published networks, a file each, and the mathematics that they share: for learning, scoring and search."""
