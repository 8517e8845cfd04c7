"""Drop-in replacements for the ELMo classes of other libraries; old code changes one import."""
