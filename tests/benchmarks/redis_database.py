"""A Redis database of our own for the peers: an empty one, emptied again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CLAIM = "taskmq-benchmarks"
# Seconds: a comparison that was killed keeps its database from others no longer than this.
_CLAIMED_FOR = 6 * 3600


class RedisDatabase:
    """An empty database of a server: used without the key prefix that would slow a peer down."""

    def __init__(self, url: str, client: Any) -> None:
        self.url = url
        self._client = client

    def empty(self) -> None:
        """Drop what a run has left; what is ours stays ours."""
        self._client.flushdb()
        self._client.set(_CLAIM, "in use", ex=_CLAIMED_FOR)

    def give_up(self) -> None:
        self._client.flushdb()
        self._client.close()


@contextmanager
def redis_database(server: str) -> Iterator[RedisDatabase | None]:
    """The last empty database of this server (`redis://host:port`), or None when no server answers."""
    database = _claimed(server.rstrip("/"))
    try:
        yield database
    finally:
        if database is not None:
            database.give_up()


def _claimed(server: str) -> RedisDatabase | None:
    try:
        import redis
    except ImportError:
        return None
    for number in range(15, 0, -1):
        url = f"{server}/{number}"
        client = redis.Redis.from_url(url)
        try:
            # The claim keeps a second comparison out of a database that is empty between two runs.
            if client.dbsize() == 0 and client.set(_CLAIM, "in use", nx=True, ex=_CLAIMED_FOR):
                return RedisDatabase(url, client)
        except redis.ConnectionError:
            return None
        client.close()
    raise RuntimeError(f"{server} has no empty database between 1 and 15")
