"""The paper's tables and figures, of a scored table and its network."""
