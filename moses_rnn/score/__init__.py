"""The main job: lines in, the same lines with further scores out."""
