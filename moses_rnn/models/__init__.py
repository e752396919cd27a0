"""Scorers of phrase pairs and hypotheses: words in, natural log-probabilities out."""
