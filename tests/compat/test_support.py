"""The tables of what is used, not needed and not yet there: complete, and true of Celery."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from taskmq.compat.app import support
from taskmq.compat.app.defaults import OPTIONS, STORE_PREFIXES

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "migration_guide.md").read_text()


def test_every_setting_is_in_exactly_one_table() -> None:
    tables = (support.USED, set(support.NOT_NEEDED), set(support.NOT_YET))

    for name in OPTIONS:
        assert sum(name in table for table in tables) == 1, name
    assert set().union(*tables) <= set(OPTIONS)


def test_settings_that_are_used_are_read_somewhere() -> None:
    source = "\n".join(
        path.read_text()
        for path in (ROOT / "compat").rglob("*.py")
        if path.name not in ("defaults.py", "support.py")
    )

    for name in support.USED:
        assert name in source, name


@pytest.mark.skipif(find_spec("celery") is None, reason="no Celery is installed beside TaskMQ here")
def test_names_and_defaults_are_celerys() -> None:
    # In a process of its own: the alias must not meet the real one here.
    code = """
import json
from celery.app.defaults import NAMESPACES, flatten
print(json.dumps({k: repr(o.default) for k, o in flatten(NAMESPACES)}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    theirs = json.loads(done.stdout)
    differ = {
        "accept_content",  # a list here, so that it can be appended to
        "task_publish_retry_policy",
        "database_engine_options",
    }

    for name, default in theirs.items():
        if name.startswith(STORE_PREFIXES):
            continue
        assert name in OPTIONS, name
        if name not in differ:
            assert repr(OPTIONS[name].default) == default, name


def test_guide_names_every_setting_that_has_no_effect_and_every_own_one() -> None:
    for name in (*support.NOT_YET, "task_priority_scale"):
        assert f"`{name}`" in GUIDE, name
