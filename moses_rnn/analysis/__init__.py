"""What a scored table and its network say: the paper's tables and figures."""
