"""What a demo worker imports: `taskmq -A taskmq.cli.demo.project worker`, as any project is."""

from __future__ import annotations

from taskmq.cli.demo.app import from_environment

app = from_environment()
