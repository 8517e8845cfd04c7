"""The geometry probe: how the vectors of each layer are distributed in space."""
