"""Nearest neighbors in context: the uses of words in a corpus most similar to one use of a word.

`index.py` searches an index of a corpus, `indexing.py` builds one, `graph.py` makes the search
fast. `measure.py` has `find_neighbors`, which does what `elmo neighbors` does.
"""
