"""The public faces of the libraries that ELMo lived in, over ours: old code, one import changed."""
