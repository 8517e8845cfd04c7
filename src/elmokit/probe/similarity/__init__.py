"""The similarity probe: whether a word means the same in two contexts, by the cosine of vectors."""
