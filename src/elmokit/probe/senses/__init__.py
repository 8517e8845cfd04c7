"""The sense probe: which WordNet sense a word is used in, by the nearest sense vector."""
