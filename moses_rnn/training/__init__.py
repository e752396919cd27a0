"""From phrase pairs to a trained network: the distinct pairs as arrays, a held-out split, optimiser, resume."""
