"""Whether a word means the same in two contexts, by the cosine of its vectors."""
