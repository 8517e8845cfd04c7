"""Strings to integers: sentences, words, characters, vocabularies."""
