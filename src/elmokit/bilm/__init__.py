"""What a biLM is: its architecture, its named weights, its state, its mix. Nothing here runs it."""
