"""How the uses of words have changed between two texts."""
