"""The uses in a corpus that are most like one of a word."""
