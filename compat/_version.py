"""The version of Celery whose interface this is, as libraries ask for it."""

from __future__ import annotations

from typing import NamedTuple

__version__ = "5.5.3"
SERIES = "taskmq"


class VersionInfo(NamedTuple):
    """`version_info` of Celery."""

    major: int
    minor: int
    micro: int
    releaselevel: str
    serial: str


version_info = VersionInfo(5, 5, 3, "", "")
VERSION = version_info
