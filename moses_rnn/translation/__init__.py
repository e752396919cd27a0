"""The network writes: sampling, beam search, and what it proposes."""
