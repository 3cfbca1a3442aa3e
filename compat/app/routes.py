"""Which queue, and which other options, a call gets from `task_routes`.

Source: Celery's "Routing tasks" guide. A router is a mapping (exact names first, then globs and compiled
patterns in order), a list of pairs, a function `(name, args, kwargs, options, task=None)`, an object with
`route_for_task(name, args, kwargs)`, or the dotted name of one of these. The first that answers decides.
Every option given at the call or by the task wins over the route's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import TYPE_CHECKING, Any

from taskmq.compat.app.queues import Queues
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.imports import symbol_by_name

if TYPE_CHECKING:
    from taskmq.compat.app.settings import Settings

__all__ = ("AMQP", "Router", "MapRoute")


class MapRoute:
    """Routes by task name."""

    def __init__(self, routes: Iterable[tuple[Any, Any]]) -> None:
        self._exact: dict[str, Any] = {}
        self._patterns: list[tuple[re.Pattern[str], Any]] = []
        for key, route in routes:
            if isinstance(key, re.Pattern):
                self._patterns.append((key, route))
            elif not isinstance(key, str):
                raise ImproperlyConfigured(
                    f"task_routes: a task name, a glob or a compiled pattern, got {key!r}"
                )
            elif any(mark in key for mark in "*?["):
                self._patterns.append((re.compile(translate(key)), route))
            else:
                self._exact[key] = route

    def __call__(self, name: str, *_: Any, **__: Any) -> Any:
        if name in self._exact:
            return self._exact[name]
        return next((route for pattern, route in self._patterns if pattern.match(name)), None)


class Router:
    """The routes of one app over its queues."""

    def __init__(self, routes: Any, queues: Queues) -> None:
        self.queues = queues
        self._routers = [_router(route) for route in _route_list(routes)]
        # Mappings answer by name alone, so they are asked once for each.
        self._by_name = all(isinstance(router, MapRoute) for router in self._routers)
        self._known: dict[str, dict[str, Any]] = {}

    def route(
        self,
        options: Mapping[str, Any],
        name: str,
        args: Any = (),
        kwargs: Any = None,
        task: Any = None,
    ) -> dict[str, Any]:
        """The options of a call with `queue` filled in: its own, else the route's, else the default.

        A routing key (with or without an exchange) names the queue that is bound to it.
        """
        given = {key: value for key, value in options.items() if value is not None}
        if not self._routers:
            merged = given
        elif self._by_name and name in self._known:
            merged = {**self._known[name], **given}
        else:
            found = self._lookup(name, args, kwargs or {}, options, task)
            if self._by_name and task is not None:
                self._known[name] = found
            merged = {**found, **given}
        queue = merged.get("queue")
        exchange = merged.pop("exchange", None)
        routing_key = merged.pop("routing_key", None)
        merged.pop("exchange_type", None)
        if queue is not None:
            merged["queue"] = self.queues.named(queue)
        elif routing_key is not None or exchange is not None:
            merged["queue"] = self.queues.bound_to(exchange, routing_key)
        else:
            merged["queue"] = self.queues.default
        return merged

    def _lookup(
        self, name: str, args: Any, kwargs: Any, options: Mapping[str, Any], task: Any
    ) -> dict[str, Any]:
        for router in self._routers:
            answer = router(name, args, kwargs, dict(options), task=task)
            if not answer:
                continue
            if isinstance(answer, str):
                return {"queue": answer}
            if isinstance(answer, Mapping):
                return {key: value for key, value in answer.items() if value is not None}
            if hasattr(answer, "name"):
                return {"queue": answer}
            raise ImproperlyConfigured(
                f"task_routes: the route of {name!r} is a queue or a mapping of options, got {answer!r}"
            )
        return {}


class AMQP:
    """`app.amqp`: the declared queues, and the router over them."""

    def __init__(self, conf: Settings) -> None:
        self.queues = Queues(
            conf.task_queues,
            _default_queue(conf.task_default_queue),
            create_missing=bool(conf.task_create_missing_queues),
        )
        self.router = Router(conf.task_routes, self.queues)


def _route_list(routes: Any) -> list[Any]:
    if not routes:
        return []
    if isinstance(routes, (list, tuple)):
        # A list of (name, route) pairs is one ordered mapping; any other list holds routers.
        if all(_is_pair(item) for item in routes):
            return [list(routes)]
        return list(routes)
    return [routes]


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, (list, tuple))
        and len(item) == 2
        and isinstance(item[0], (str, re.Pattern))
        and not callable(item[1])
    )


def _router(route: Any) -> Callable[..., Any]:
    if isinstance(route, str):
        route = symbol_by_name(route)
    if isinstance(route, type):
        route = route()
    if isinstance(route, Mapping):
        return MapRoute(route.items())
    if isinstance(route, (list, tuple)):
        return MapRoute(route)
    if hasattr(route, "route_for_task"):
        answer = route.route_for_task

        def ask(name: str, args: Any, kwargs: Any, options: Any, task: Any = None) -> Any:
            return answer(name, args, kwargs)

        return ask
    if callable(route):
        return route  # type: ignore[no-any-return]
    raise ImproperlyConfigured(
        f"task_routes: mappings, lists of pairs, functions or names of these, got {route!r}"
    )


def _default_queue(value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str) or not name:
        raise ImproperlyConfigured(f"task_default_queue: a queue name, got {value!r}")
    return name
