"""Celery's task message protocol 2, both ways: one envelope for both fleets (DESIGN §5).

What Celery has a place for goes there; the rest goes into `taskmq-*` headers, which Celery ignores and
keeps through a retry. Headers that are neither are kept in `Message.headers` and written again.

The exact priority is a header, the wire's own a projection of it: a broker or a Celery worker that
changes the projection has the last word, so the header counts only while the two agree.
"""

from __future__ import annotations

from taskmq.wire.fields import Scale, project_priority
from taskmq.wire.reading import from_protocol2
from taskmq.wire.writing import to_protocol2

__all__ = ["to_protocol2", "from_protocol2", "project_priority", "Scale"]
