"""Several parts together, with real processes and files."""
