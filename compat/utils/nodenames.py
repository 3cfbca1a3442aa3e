"""Worker names, `name@host`."""

from __future__ import annotations

import socket

__all__ = ("nodename", "nodesplit", "gethostname")


def gethostname() -> str:
    """The name of this machine."""
    return socket.gethostname()


def nodename(name: str, hostname: str) -> str:
    """`name@hostname`."""
    return f"{name}@{hostname}"


def nodesplit(name: str) -> tuple[str | None, str]:
    """(name, host) of a worker name; (None, text) without an `@`."""
    head, at, tail = name.partition("@")
    return (head, tail) if at else (None, name)
