"""The frozen biLM, running: words in, layers out. No torch."""
