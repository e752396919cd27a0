"""Training: from phrase pairs or texts to a trained network, with a held-out split, optimisers and resuming."""
