"""A biLM as data: its architecture, named weights, state and mix. Nothing here runs it."""
