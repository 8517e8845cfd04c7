"""Inference with a frozen biLM: words in, layers out, without torch."""
