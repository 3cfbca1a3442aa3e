"""Declaring tasks: the decorators in all their forms, base classes, names, options."""

from __future__ import annotations

import functools
import inspect
import pickle
from typing import Any
from unittest import mock

import pytest

from taskmq.compat import Celery, Task, current_app, shared_task
from taskmq.compat.exceptions import DuplicateTaskNameWarning, ImproperlyConfigured, NotRegistered
from taskmq.compat.local import PromiseProxy
from taskmq.errors import ConfigError
from tests.compat.conftest import MakeApp, MakeWorker


def test_task_decorator_works_bare_with_and_without_options(app: Celery) -> None:
    @app.task
    def bare(x: int) -> int:
        return x

    @app.task()
    def empty(x: int) -> int:
        return x

    @app.task(name="named", queue="q")
    def named(x: int) -> int:
        return x

    assert [bare(1), empty(2), named(3)] == [1, 2, 3]
    assert {bare.name, empty.name} == {f"{__name__}.bare", f"{__name__}.empty"}
    assert app.tasks["named"] == named
    assert named.queue == "q"


def test_task_of_a_script_takes_the_name_of_the_app(app: Celery) -> None:
    def add(x: int) -> int:
        return x

    add.__module__ = "__main__"

    assert app.task(add).name == "proj.add"


def test_task_is_made_at_its_first_use_so_that_a_later_base_class_counts(app: Celery) -> None:
    class Base(Task):
        abstract = True
        mark = "mine"

    @app.task
    def job() -> None: ...

    app.Task = Base

    assert type(job) is PromiseProxy
    assert job.mark == "mine"
    assert isinstance(job, Base)


def test_task_cls_is_the_base_of_every_task(make_app: MakeApp) -> None:
    app = make_app(task_cls=f"{__name__}:Counting")

    @app.task
    def job() -> None: ...

    assert isinstance(job, Counting)


class Counting(Task):
    """A base class found by its dotted name."""

    calls = 0


def test_base_option_makes_one_instance_that_keeps_its_state(
    app: Celery, make_worker: MakeWorker
) -> None:
    made = []

    class Connected(Task):
        def __init__(self) -> None:
            made.append(self)
            self.seen: list[int] = []

    @app.task(base=Connected, bind=True)
    def job(self: Any, x: int) -> int:
        self.seen.append(x)
        return len(self.seen)

    worker = make_worker(app)
    results = [job.delay(1), job.delay(2)]
    worker.run_until_idle()

    assert [r.get() for r in results] == [1, 2]
    assert len(made) == 1


def test_options_celery_does_not_know_become_attributes(app: Celery) -> None:
    @app.task(once={"graceful": True}, verbose_name="Job")
    def job() -> None: ...

    assert job.once == {"graceful": True}
    assert job.verbose_name == "Job"


def test_bound_task_gets_itself_first(app: Celery) -> None:
    @app.task(bind=True)
    def job(self: Any, x: int) -> Any:
        return self.name, x

    assert job(2) == (job.name, 2)
    assert job.run(2) == (job.name, 2)


def test_class_based_task_is_registered_as_an_instance(
    app: Celery, make_worker: MakeWorker
) -> None:
    class Adder(app.Task):  # type: ignore[name-defined, misc]
        name = "adder"

        def run(self, x: int, y: int) -> int:
            return x + y

    adder = app.register_task(Adder())
    worker = make_worker(app)

    result = adder.delay(1, 2)
    worker.run_until_idle()

    assert app.tasks["adder"] is adder
    assert result.get() == 3


def test_class_based_task_without_a_name_is_named_after_its_class(app: Celery) -> None:
    class Nameless(Task):
        def run(self) -> None: ...

    assert app.register_task(Nameless).name == f"{__name__}.Nameless"


@pytest.mark.parametrize("priority", [10, -10, 3.0, "5", True])
def test_priority_out_of_range_is_refused_at_the_decorator(app: Celery, priority: Any) -> None:
    with pytest.raises(ConfigError, match="priority"):

        @app.task(priority=priority)
        def job() -> None: ...

    assert not any("job" in name for name in app.tasks)


def test_pydantic_tasks_are_refused_at_the_decorator(app: Celery) -> None:
    with pytest.raises(ImproperlyConfigured, match="model_validate"):
        app.task(pydantic=True)(lambda: None)


def test_options_by_position_are_refused(app: Celery) -> None:
    with pytest.raises(TypeError, match="options are keywords"):
        app.task("name")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="exactly 1 argument"):
        app.task(len, len)  # type: ignore[call-overload]


def test_two_functions_under_one_name_warn_and_the_first_stays(app: Celery) -> None:
    @app.task(name="twin")
    def first() -> int:
        return 1

    @app.task(name="twin")
    def second() -> int:
        return 2

    with pytest.warns(DuplicateTaskNameWarning, match="twin"):
        app.finalize()
    assert app.tasks["twin"]() == 1


def test_task_annotations_change_attributes_of_the_tasks_they_name(make_app: MakeApp) -> None:
    app = make_app(task_annotations={"*": {"rate_limit": "10/s"}, "special": {"max_retries": 9}})

    @app.task(name="special")
    def special() -> None: ...

    @app.task(name="plain")
    def plain() -> None: ...

    assert (special.rate_limit, special.max_retries) == ("10/s", 9)
    assert (plain.rate_limit, plain.max_retries) == ("10/s", 3)


# -- stand-ins ------------------------------------------------------------------------------------


def test_stand_in_passes_for_the_task(app: Celery) -> None:
    @app.task
    def job(x: int, y: int = 1) -> int:
        "What it does."
        return x + y

    @functools.wraps(job)
    def wrapped() -> None: ...

    assert isinstance(job, Task)
    assert job == app.tasks[job.name]
    assert hash(job) == hash(app.tasks[job.name])
    assert (job.__name__, job.__doc__) == ("job", "What it does.")
    assert (wrapped.__name__, wrapped.__module__) == ("job", __name__)
    assert str(inspect.signature(job)) == "(x: 'int', y: 'int' = 1) -> 'int'"
    assert job.__wrapped__(1) == 2


def test_delay_can_be_patched_through_a_shared_task(app: Celery) -> None:
    @shared_task
    def job() -> None: ...

    with mock.patch.object(job, "delay") as delay:
        job.delay(1)

    delay.assert_called_once_with(1)
    assert job.delay is not delay


def test_task_is_pickled_by_its_name(app: Celery) -> None:
    app.set_current()

    @app.task(name="pickled")
    def job() -> None: ...

    assert pickle.loads(pickle.dumps(job)) is app.tasks["pickled"]
    assert b"job" not in pickle.dumps(app.tasks["pickled"])


# -- shared tasks ---------------------------------------------------------------------------------


def test_shared_task_is_bound_to_apps_made_before_and_after_it(make_app: MakeApp) -> None:
    before = make_app("before")
    before.finalize()

    @shared_task(name="shared")
    def job() -> str:
        return "ran"

    after = make_app("after")

    assert before.tasks["shared"] is not after.tasks["shared"]
    assert before.tasks["shared"].app is before
    assert after.tasks["shared"].app is after


def test_shared_task_is_that_of_the_app_that_is_current_when_it_is_used(make_app: MakeApp) -> None:
    one, two = make_app("one"), make_app("two")

    @shared_task
    def job() -> None: ...

    one.set_current()
    of_one = job.app
    two.set_current()

    assert (of_one, job.app) == (one, two)


def test_priority_of_a_shared_task_is_checked_when_it_is_bound(make_app: MakeApp) -> None:
    @shared_task(priority=10)
    def job() -> None: ...

    app = make_app()
    with pytest.raises(ConfigError, match="10"):
        app.finalize()


def test_task_of_one_app_is_known_to_another_unless_it_is_not_shared(make_app: MakeApp) -> None:
    one, other = make_app("one"), make_app("other")
    one.task(name="everywhere")(lambda: None)
    one.task(name="only.here", shared=False)(lambda: None)
    one.finalize()

    assert "everywhere" in other.tasks
    assert "only.here" not in other.tasks


def test_current_app_is_the_last_one_made_in_every_thread(make_app: MakeApp) -> None:
    import threading

    app = make_app("mine")
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(current_app.main))
    thread.start()
    thread.join(timeout=10)

    assert seen == [app.main]


def test_unknown_task_name_is_a_key_error_that_names_the_likely_one(app: Celery) -> None:
    app.task(name="send_email")(lambda: None)

    with pytest.raises(NotRegistered, match="Did you mean 'send_email'"):
        app.tasks["send_emial"]
    assert issubclass(NotRegistered, KeyError)


def test_app_that_may_not_complete_itself_says_so(make_app: MakeApp) -> None:
    app = make_app(autofinalize=False)

    with pytest.raises(RuntimeError, match="not finalized"):
        _ = app.tasks
    app.finalize()
    assert app.tasks is not None


def test_signal_of_completion_is_sent_once(app: Celery) -> None:
    seen = []
    app.on_after_finalize.connect(lambda **kw: seen.append(kw["sender"]), weak=False)

    app.finalize()
    app.finalize()

    assert seen == [app]
