"""Generate targets with a network: sampling, beam search and proposals for tables."""
