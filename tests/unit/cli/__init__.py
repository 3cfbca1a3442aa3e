"""The command line, in this process."""
