"""The tag probe: how well a linear classifier predicts tags from each layer's vectors."""
