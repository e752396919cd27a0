"""What Python code calls; `moses_rnn` itself names what of it is stable (docs/api.md)."""
