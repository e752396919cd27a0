"""Scores of pairs and of hypotheses: words in, natural log-probabilities out."""
