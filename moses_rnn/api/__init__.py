"""The Python API; `moses_rnn` exports its stable part (docs/api.md)."""
