"""Coordination between processes: `base` is the seam, each transport brings its own."""
