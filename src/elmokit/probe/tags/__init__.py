"""Which tag a word has, by a linear classifier on each layer."""
