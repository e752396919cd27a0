"""What Moses and others write: text and bytes, no tensors."""
