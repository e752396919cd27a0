"""The main job: phrase pairs in, further scores out."""
