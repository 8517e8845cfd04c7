"""Semantic change: how the uses of words differ between two texts, such as two periods.

`targets.py` chooses words and samples their uses, `distances.py` compares two groups of vectors,
and `measure.py` has `semantic_change`, which does what `elmo change` does.
"""
