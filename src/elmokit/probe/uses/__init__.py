"""The uses of one word in sentences: their vectors in every layer, and a picture of them."""
