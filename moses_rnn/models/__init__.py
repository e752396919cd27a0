"""Words and tensors: the networks, their vocabularies and their checkpoints. Nothing here knows Moses."""
