"""How a process of TaskMQ writes its log, where the project has not set logging up itself."""

from __future__ import annotations

import logging

from taskmq.printable import printable

__all__ = ["SafeFormatter", "IN_TASK"]

#: The attribute of a record that says in which run it was logged, as `name[id]`; it comes before the message.
IN_TASK = "in_task"


class SafeFormatter(logging.Formatter):
    """Only a record begins at the left edge, whatever a task's name or an exception's message holds.

    Further lines of a message or traceback are indented, other control characters escaped, so that
    nothing a task logs can pass for a record of ours.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).rstrip()
        return printable(text, multiline=True).replace("\n", "\n    ")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        run = getattr(record, IN_TASK, None)
        if run:
            # Made anew for each handler, so the prefix is put before it once.
            record.message = f"{run}: {record.message}"
        return super().formatMessage(record)
