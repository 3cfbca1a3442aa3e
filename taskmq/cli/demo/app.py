"""The demo's application: its tasks, its store, and how it reaches the workers.

Where the store is, which files are read and whether workers yield goes through the environment, because
worker processes and spawned pool children import `taskmq.cli.demo.project` afresh.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from typing import Any

from taskmq.app import App
from taskmq.cli.demo.analysis import analyse, count_lines, find_word, outline
from taskmq.cli.demo.baseline import WithoutYielding
from taskmq.clock import SystemClock
from taskmq.config import Config
from taskmq.errors import ConfigError
from taskmq.priority import Priority
from taskmq.stores import transport_settings
from taskmq.transports.base import Transport
from taskmq.transports.urls import open_transport

STORE = "TASKMQ_DEMO_STORE"
SOURCES = "TASKMQ_DEMO_SOURCES"
YIELDING = "TASKMQ_DEMO_YIELDING"


def demo_app(store: str, *, yielding: bool) -> App:
    """An app on the SQLite file `store`, without yielding on the wrapper that keeps what it holds."""
    config = Config(broker_url=f"sqlite:///{store}", default_priority=Priority.LOW)
    transport: Transport | None = None
    if not yielding:
        inner = open_transport(
            config.broker_url, transport_settings(config), clock=SystemClock(), random=Random()
        )
        transport = WithoutYielding(inner)
    return App(config, name="taskmq demo", transport=transport)


def declare(app: App, sources: Path) -> None:
    """The demo's tasks. Each says when it began, which is what the waiting times are made of."""

    @app.task(name="demo.analyse", priority=Priority.LOW)
    def bulk(name: str) -> dict[str, Any]:
        started = time.time()
        return {"started": started, "facts": analyse((sources / name).read_bytes())}

    @app.task(name="demo.find", priority=Priority.CRITICAL)
    def find(name: str, word: str) -> dict[str, Any]:
        started = time.time()
        return {"started": started, "facts": find_word((sources / name).read_bytes(), word)}

    @app.task(name="demo.count", priority=Priority.HIGH)
    def count(name: str) -> dict[str, Any]:
        started = time.time()
        return {"started": started, "facts": count_lines((sources / name).read_bytes())}

    @app.task(name="demo.outline", priority=Priority.NORMAL)
    def definitions(name: str) -> dict[str, Any]:
        started = time.time()
        return {"started": started, "facts": outline((sources / name).read_bytes())}


def from_environment() -> App:
    """The app of a demo worker; `ConfigError` when it is started by hand."""
    store, sources = os.environ.get(STORE), os.environ.get(SOURCES)
    if not store or not sources:
        raise ConfigError("taskmq.cli.demo.project belongs to `taskmq demo`, which starts it")
    app = demo_app(store, yielding=os.environ.get(YIELDING) != "off")
    declare(app, Path(sources))
    return app
