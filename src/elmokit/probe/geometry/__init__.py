"""How the vectors of a layer lie in space."""
