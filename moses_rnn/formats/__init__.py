"""What Moses reads and writes: bytes and text, no tensors."""
