"""Looking inside a biLM: what its layers know, and what tasks take from them.

A package for each question, and in each the same file names: readers of data, `measure.py`, which
computes, and `shown.py`, which makes tables and pictures of the numbers alone. `tags`, `senses`,
`similarity` and `geometry` ask every layer of a frozen model, and the same network before it was
trained (`untrained.py`). `neighbours` and `change` look at the uses of words in texts. `tasks`
trains task models in several ways and compares them.

`measured.py` says what a measurement is and keeps it; `report.py` makes one page of all of them.
"""
