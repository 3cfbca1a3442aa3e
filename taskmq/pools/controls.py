"""What a run may ask of its pool, wherever it runs: to pass its progress on, and whether it should stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskmq.pools.base import Completion, Ending

if TYPE_CHECKING:
    from taskmq.app import App


class Control:
    """The `RunControl` of one run; `deliver` takes its progress on the way to the coordinator."""

    __slots__ = ("_app", "_deliver", "number", "reason")

    def __init__(self, app: App, number: int, deliver: Callable[[Completion], None]) -> None:
        self._app = app
        self._deliver = deliver
        self.number = number
        # Set by `Pool.cancel`, read by the run: one assignment, no lock needed.
        self.reason: str | None = None

    def report(self, value: Any, label: str) -> None:
        """Pass progress on; raises `EncodeError` for a value that cannot be encoded."""
        body, content_type = self._app.codec.encode_value(value)
        self._deliver(
            Completion(
                number=self.number,
                ending=Ending.PROGRESS,
                body=body,
                content_type=content_type,
                label=label,
            )
        )

    def cancelled(self) -> str | None:
        """Why this run should stop, if anybody has said so."""
        return self.reason
