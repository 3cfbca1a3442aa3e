"""The captured messages under tests/vectors, in one shape whatever broker they came from."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from taskmq.wire import Scale

FOLDER = Path(__file__).resolve().parents[2] / "vectors"


class Vector(NamedTuple):
    """One captured task message. `decoded` is its body as the capture decoded it, None where it did not."""

    name: str
    scale: Scale
    headers: dict[str, Any]
    properties: dict[str, Any]
    body: bytes
    queue: str
    decoded: Any


def load() -> list[Vector]:
    """Every task message of every vector file."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text())
        if isinstance(document, dict):
            messages = [*_redis(document), *_amqp(document)]
            found += [
                vector._replace(name=f"{path.stem}-{number}")
                for number, vector in enumerate(messages)
            ]
    return found


def _redis(document: dict[str, Any]) -> Iterator[Vector]:
    lists = document.get("redis_keys_to_messages (pop order)", {})
    items = [item for queue in lists.values() for item in queue]
    items += document.get("messages", [])
    for item in items:
        raw = item.get("raw_redis_list_item", item)
        properties = {
            **raw["properties"],
            "content_type": raw["content-type"],
            "content_encoding": raw["content-encoding"],
        }
        decoded = item.get("decoded_body")
        yield Vector(
            name="",
            scale="redis",
            headers=raw["headers"],
            properties=properties,
            body=base64.b64decode(raw["body"]),
            queue=properties["delivery_info"]["routing_key"],
            decoded=decoded if isinstance(decoded, list) else None,
        )


def _amqp(document: dict[str, Any]) -> Iterator[Vector]:
    for item in document.get("messages (get order)", []):
        yield Vector(
            name="",
            scale="amqp",
            headers=item["application_headers"],
            properties=item["properties"],
            body=item["body"].encode(),
            queue=item["delivery_info"]["routing_key"],
            decoded=json.loads(item["body"]),
        )
