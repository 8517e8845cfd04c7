"""Learning a biLM: the corpus, the loop, and what measures it. Importing this imports no torch."""
