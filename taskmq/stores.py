"""The transport and the result store of one app: opened at first use, once, in each process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskmq.clock import Clock
    from taskmq.config import Config
    from taskmq.results.base import ResultStore
    from taskmq.states import State
    from taskmq.transports.base import Settings, Transport

#: The `result_url` under which no task keeps a result.
DISABLED = "disabled"


class Stores:
    """Opens what the `Config` names. Thread-safe, and never waits in a child for a lock of its parent."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        random: Random,
        base_dir: Path | None,
        transport: Transport | None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._random = random
        self._base_dir = base_dir
        self._given = transport
        self._open: Transport | None = None
        self._elsewhere: Transport | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def with_messages(self) -> bool:
        """Whether results are stored beside the messages, and so in the transaction that settles."""
        return self._config.result_url in (None, DISABLED, self._config.broker_url)

    @property
    def disabled(self) -> bool:
        """Whether no results are kept at all."""
        return self._config.result_url == DISABLED

    @property
    def at_hand(self) -> bool:
        """Whether the transport was given or is open already."""
        return self._given is not None or self._open is not None

    @property
    def transport(self) -> Transport:
        """The open transport."""
        if self._open is not None:
            return self._open
        with self._here():
            if self._open is None:
                transport = self._given or self._build(self._config.broker_url)
                transport.open()
                self._open = transport
            return self._open

    @property
    def results(self) -> ResultStore:
        """The open result store."""
        if self.with_messages:
            return self.transport.results
        if self._elsewhere is None:
            with self._here():
                if self._elsewhere is None:
                    assert self._config.result_url is not None
                    transport = self._build(self._config.result_url)
                    transport.open()
                    self._elsewhere = transport
        return self._elsewhere.results

    def state(self, task_id: str) -> State:
        """Where a task stands: from its result, else from where its message is, else UNKNOWN."""
        if self.with_messages:
            return self.results.state(task_id)
        # The message first: a worker writes the result before the message goes.
        beside = self.transport.results.state(task_id)
        record = self.results.get(task_id)
        return record.state if record is not None and record.state.final else beside

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
        with self._here():
            opened = [store for store in (self._open, self._elsewhere) if store is not None]
            self._open = self._elsewhere = None
        for store in opened:
            store.close()

    def _here(self) -> threading.Lock:
        # A fork may have copied the lock while another thread of the parent held it.
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
        return self._lock

    def _build(self, url: str) -> Transport:
        # Imported here: an app that is only declared (a web process that submits nothing) loads no adapter.
        from taskmq.transports.urls import open_transport

        return open_transport(
            url,
            transport_settings(self._config),
            clock=self._clock,
            random=self._random,
            base_dir=self._base_dir,
        )


def transport_settings(config: Config) -> Settings:
    """What of the configuration a transport needs to know."""
    # Imported here, as above: the seam brings the policy of what follows a task along.
    from taskmq.transports.base import Settings

    return Settings(
        max_body=config.max_body,
        max_yields=config.max_yields,
        lease=config.lease,
        result_expires=config.result_expires,
        dead_letter_expires=config.dead_letter_expires,
        revocation_expires=config.revocation_expires,
        poll_interval=config.poll_interval,
    )
