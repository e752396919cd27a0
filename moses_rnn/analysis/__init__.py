"""The paper's tables and figures for a scored table and its network."""
