"""A task class that notes its hooks, and the signals that are sent."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.compat import Task, signals


class Noted(Task):
    """Notes every hook it is called with, in order."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        self.notes.append(("before_start", self.request.id == task_id, args, kwargs))

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        self.notes.append(("on_success", retval, self.request.id == task_id))

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        self.notes.append(("on_failure", repr(exc), "Traceback" in str(einfo)))

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        self.notes.append(("on_retry", repr(exc)))

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        self.notes.append(("after_return", status, str(retval)))


def hear(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the signals of a run are sent with, in order, from now on."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name in ("prerun", "postrun", "success", "failure", "retry", "revoked"):
        signal = getattr(signals, f"task_{name}")
        monkeypatch.setattr(signal, "_receivers", [])

        def receive(name: str = name, **kwargs: Any) -> None:
            found.append((name, kwargs))

        signal.connect(receive, weak=False)
    return found
