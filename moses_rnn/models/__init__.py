"""The published equations, for learning: a network a file; vocabularies, checkpoints, what suits the hardware."""
