"""Text to words, characters and numbers: text files, sentences, tokens, vocabularies."""
