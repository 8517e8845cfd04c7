"""Looking inside a biLM: what its layers know, measured on frozen vectors.

`tags.py`: which part of speech a word is, by a linear classifier on each layer. `neighbours.py`:
the uses of words in a corpus that are nearest to one use of a word. `senses.py`: how far apart the
uses of one word in two senses are.
"""
