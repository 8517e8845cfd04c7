"""Looking inside a biLM: what its layers know, and what tasks take from them.

A package for each question, and in each the same file names: readers of data, `measure.py`, which
computes, and `render.py`, which makes tables and pictures of the numbers alone. `tags`, `senses`,
`similarity` and `geometry` ask every layer of a frozen model, and the same network before it was
trained (`untrained.py`). `neighbors` and `change` look at the uses of words in texts. `tasks`
trains task models in several ways and compares them.

`results.py` stores measurements; `report_page.py` makes one page of all of them.
"""
