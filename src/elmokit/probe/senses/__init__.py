"""Which sense a word is used in, by the nearest of the senses of WordNet."""
