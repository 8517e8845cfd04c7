"""What about ELMo helps a task: which layers, at which placement, with how little data."""
