"""Routing: which queue a call goes to, and what a route may say besides."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kombu.entity import Exchange, Queue

from taskmq.compat import Celery
from taskmq.compat.app.queues import Queues, topic_matches
from taskmq.compat.app.routes import Router
from taskmq.compat.exceptions import ImproperlyConfigured, QueueNotFound


def queue_of(routes: Any, name: str = "feed.tasks.import_feed", **options: Any) -> Any:
    """The queue of a call under these routes."""
    return Router(routes, Queues(None, "default")).route(options, name)["queue"]


def by_function(name: str, args: Any, kwargs: Any, options: Any, task: Any = None, **_: Any) -> Any:
    """A router that is a function."""
    return {"queue": "by-function"} if name.startswith("feed.") else None


class ByMethod:
    """A router of Celery's older kind."""

    def route_for_task(self, task: str, args: Any = None, kwargs: Any = None) -> Any:
        return "by-method"


@pytest.mark.parametrize(
    ("routes", "queue"),
    [
        (None, "default"),
        ({"feed.tasks.import_feed": "feeds"}, "feeds"),
        ({"feed.tasks.import_feed": {"queue": "feeds"}}, "feeds"),
        ({"feed.tasks.*": {"queue": "glob"}}, "glob"),
        ({"feed.tasks.*": {"queue": "glob"}, "feed.tasks.import_feed": "exact"}, "exact"),
        ({re.compile(r"feed\.(tasks|web)\..*"): {"queue": "regex"}}, "regex"),
        ([("feed.tasks.import_*", {"queue": "first"}), ("feed.*", {"queue": "second"})], "first"),
        (([("web.*", {"queue": "web"}), ("feed.*", {"queue": "second"})],), "second"),
        (by_function, "by-function"),
        ([by_function], "by-function"),
        (f"{__name__}.by_function", "by-function"),
        (f"{__name__}:ByMethod", "by-method"),
        ([{"other": "x"}, ByMethod()], "by-method"),
        ({"feed.tasks.import_feed": Queue("of-kombu")}, "of-kombu"),
    ],
)
def test_route_is_found(routes: Any, queue: str) -> None:
    assert queue_of(routes) == queue


def test_queue_of_the_call_beats_the_route() -> None:
    assert queue_of({"feed.*": "feeds"}, queue="urgent") == "urgent"
    assert queue_of({"feed.*": "feeds"}, queue=None) == "feeds"


def test_route_may_name_other_options_which_the_call_overrides() -> None:
    router = Router({"job": {"queue": "q", "priority": 3, "expires": 60}}, Queues(None, "default"))

    assert router.route({"priority": 5}, "job") == {"queue": "q", "priority": 5, "expires": 60}


def test_routing_key_names_the_queue_that_is_bound_to_it() -> None:
    feeds = Exchange("feeds", type="topic")
    queues = Queues(
        [
            Queue("email", Exchange("email"), routing_key="email.send"),
            Queue("feeds", feeds, routing_key="feed.#"),
        ],
        "default",
    )
    router = Router({"a": {"routing_key": "email.send"}}, queues)

    assert router.route({}, "a") == {"queue": "email"}
    assert router.route({"routing_key": "feed.one.two", "exchange": feeds}, "b") == {
        "queue": "feeds"
    }
    with pytest.raises(ImproperlyConfigured, match=r"routing key 'nobody'"):
        router.route({"routing_key": "nobody"}, "c")


def test_one_message_for_several_queues_is_refused() -> None:
    queues = Queues(
        [Queue(n, Exchange("x", type="topic"), routing_key="k.#") for n in ("a", "b")], "default"
    )

    with pytest.raises(ImproperlyConfigured, match="several queues"):
        queues.bound_to("x", "k.1")
    with pytest.raises(ImproperlyConfigured, match="fanout"):
        Queues([Queue("all", Exchange("x", type="fanout"))], "default")


@pytest.mark.parametrize(
    ("pattern", "key", "takes"),
    [
        ("feed.#", "feed", True),
        ("feed.#", "feed.a.b", True),
        ("feed.*", "feed.a", True),
        ("feed.*", "feed.a.b", False),
        ("#", "", True),
        ("#.b", "b", True),
        ("a.#.b", "a.x.y.b", True),
        ("#.b", "ab", False),
        ("feed", "feeds", False),
    ],
)
def test_topic_pattern(pattern: str, key: str, takes: bool) -> None:
    assert topic_matches(pattern, key) is takes


def test_queues_are_declared_as_names_objects_or_a_mapping() -> None:
    assert set(Queues("a, b", "d")) == {"a", "b", "d"}
    assert set(Queues(["a", Queue("b")], "d")) == {"a", "b", "d"}
    older = Queues({"a": {"exchange": "x", "binding_key": "k"}}, "d")
    assert (older["a"].exchange, older["a"].routing_key) == ("x", "k")
    with pytest.raises(ImproperlyConfigured, match="task_queues"):
        Queues([3], "d")


def test_unknown_queue_is_made_unless_the_project_forbids_it() -> None:
    assert Queues(["a"], "d").named("new") == "new"
    with pytest.raises(QueueNotFound, match="Did you mean 'emails'"):
        Queues(["emails"], "d", create_missing=False).named("emials")


@pytest.mark.parametrize("routes", [3, [3], {3: "q"}])
def test_malformed_routes_are_named(routes: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="task_routes"):
        queue_of(routes)


def test_route_that_is_no_queue_is_named() -> None:
    with pytest.raises(ImproperlyConfigured, match="import_feed"):
        queue_of({"feed.*": 3})


def test_changed_routes_hold_for_the_next_call(app: Celery) -> None:
    task = app.task(name="job")(lambda: None)

    def queue() -> str:
        (found,) = app.engine.transport.operators.find(task.delay().id)
        return found.message.queue

    app.conf.task_routes = {"job": "one"}
    before = [queue(), queue()]
    app.conf.task_routes = {"job": "two"}

    assert before == ["one", "one"]
    assert queue() == "two"


def test_route_that_looks_at_the_arguments_is_asked_each_time(app: Celery) -> None:
    task = app.task(name="job")(lambda x: None)
    app.conf.task_routes = [{"other": "q"}, lambda name, args, *_, **__: {"queue": f"q{args[0]}"}]

    queues = [app.engine.transport.operators.find(task.delay(x).id)[0] for x in (1, 2)]

    assert [found.message.queue for found in queues] == ["q1", "q2"]
