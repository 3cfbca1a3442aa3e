"""Every run is written down, one line in one write, so that what happened can be counted."""

import os


def note(*words):
    line = " ".join(str(word) for word in words) + "\n"
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
    finally:
        os.close(ledger)
