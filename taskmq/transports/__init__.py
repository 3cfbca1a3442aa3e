"""Transports: the code that moves messages. `base` is the seam, one folder per adapter."""
