"""The command line as a user starts it."""
