"""Semantic change: how the uses of words differ between two texts, such as two periods.

`targets.py` chooses words and samples their uses, `units.py` says which uses the permutation test
keeps together, `distances.py` compares two groups of vectors and tests the difference,
`contrast.py` finds examples, `compare.py` does all of it for sentences, and `measure.py` has
`semantic_change`, which does what `elmo change` does.
"""
