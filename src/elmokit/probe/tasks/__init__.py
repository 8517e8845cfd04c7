"""What of ELMo helps a task: which layers, at which place, with how little data."""
