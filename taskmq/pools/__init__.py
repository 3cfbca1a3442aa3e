"""Pools: where task code runs. `base` is the seam, one file per pool."""
