"""Result stores: `base` is the seam; those that live beside the messages are in their transport's folder."""
