"""Running the real thing: the decoder and its tools, and comparing what they see with what was written."""
