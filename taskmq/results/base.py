"""The result-store seam: only progress and final states are rows; other states are derived."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from taskmq.message import ResultRecord
from taskmq.states import State


class ResultStore(ABC):
    """Keeps `ResultRecord`s by task_id. May raise `ResultUnavailable`."""

    #: Whether records commit in the transaction that settles the delivery.
    with_messages: bool = False

    @abstractmethod
    def open(self) -> None:
        """Connect; idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Let go; idempotent."""

    @abstractmethod
    def get(self, task_id: str) -> ResultRecord | None:
        """The record of a task, or None when it has none (unknown, unfinished, forgotten, swept)."""

    @abstractmethod
    def put(self, records: Sequence[ResultRecord]) -> None:
        """Write or replace records."""

    @abstractmethod
    def forget(self, task_ids: Sequence[str]) -> None:
        """Delete records; unknown ids are no error."""

    @abstractmethod
    def wait(self, task_ids: Sequence[str], timeout: float | None) -> dict[str, ResultRecord]:
        """Block until one of these has a final record, or the timeout; return the final ones there are.

        Woken by notification where there is one, polling otherwise; survives reconnects.
        """

    def state(self, task_id: str) -> State:
        """The state from the record alone; stores beside the messages also look where the message is."""
        record = self.get(task_id)
        return record.state if record else State.UNKNOWN
