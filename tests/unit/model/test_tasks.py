"""Declaring a task and calling it: names, arguments, direct calls, ids."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Context, Task, current_context
from taskmq.errors import ConfigError, NotRegistered, Retry
from tests.unit.model.conftest import AppMaker


def test_a_task_is_named_by_module_and_function(app: App) -> None:
    @app.task
    def work() -> None: ...

    assert work.name == f"{__name__}.test_a_task_is_named_by_module_and_function.work"
    assert app.registry[work.name] is work


def test_a_name_can_be_given(app: App) -> None:
    assert app.task(name="mine")(lambda: None).name == "mine"


def test_a_script_names_its_tasks_as_a_worker_would_import_them(tmp_path: Path) -> None:
    package = tmp_path / "proj"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "jobs.py").write_text(
        "from taskmq import App\n"
        "app = App(broker_url='memory://')\n"
        "@app.task\n"
        "def work(): ...\n"
        "print(work.name)\n"
    )
    for arguments in (["proj/jobs.py"], ["-m", "proj.jobs"], ["-c", "import proj.jobs"]):
        run = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert run.stdout == "proj.jobs.work\n", arguments


def test_the_same_function_declared_again_replaces_the_first(app: App) -> None:
    def declare(value: int) -> Task[[], int]:
        @app.task(priority=value)
        def work() -> int:
            return value

        return work

    declare(1)
    second = declare(2)

    assert app.registry[second.name] is second
    assert app.message(second).priority == 2
    assert app.message(second.name).priority == 2


def test_two_functions_under_one_name_are_refused(app: App) -> None:
    @app.task(name="work")
    def one() -> None: ...

    with pytest.raises(ConfigError, match=r"'work'.*one.*two"):

        @app.task(name="work")
        def two() -> None: ...

    assert app.registry["work"] is one


def test_a_name_nobody_registered_says_which_is_near(app: App) -> None:
    app.task(name="proj.send_email")(lambda: None)

    with pytest.raises(NotRegistered, match=r"Did you mean 'proj\.send_email'"):
        app.registry["proj.send_mail"]


def test_calling_a_task_runs_its_function_here(app: App) -> None:
    @app.task
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert add(1) == 3
    assert add.__doc__ == "Adds."
    assert add.__name__ == "add"


def test_an_async_task_gives_its_coroutine(app: App) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    assert add.is_async
    assert asyncio.run(add(1, 2)) == 3


def test_invoke_passes_the_context_only_to_a_bound_task(app: App) -> None:
    @app.task
    def plain(a: int) -> int:
        return a

    @app.task(bind=True)
    def bound(ctx: Context, a: int) -> tuple[Context, int]:
        return ctx, a

    marker: Any = object()

    assert plain.invoke(marker, (1,), {}) == 1
    assert bound.invoke(marker, (), {"a": 2}) == (marker, 2)


def test_a_bound_task_called_as_a_function_gets_a_context_of_its_own(app: App) -> None:
    @app.task(bind=True, priority=4)
    def bound(ctx: Context, a: int) -> tuple[int, int]:
        ctx.progress(a)
        ctx.check_cancelled()
        return ctx.priority, a

    @app.task(bind=True)
    def again(ctx: Context) -> None:
        ctx.retry(delay=5)

    assert bound(3) == (4, 3)
    with pytest.raises(Retry):
        again()
    assert current_context() is None


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"c": 2}), ((1,), {"a": 1}), ((1, 2), {"z": 1})],
)
def test_arguments_the_function_does_not_take_are_refused_at_the_call(
    app: App, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    @app.task(name="strict")
    def strict(a: int, b: int = 0) -> None: ...

    with pytest.raises(TypeError, match="task strict: "):
        app.message(strict, args, kwargs)
    with pytest.raises(TypeError):
        strict.fn(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1,), {}), ((1, 2), {}), ((), {"a": 1}), ((1,), {"b": 1})]
)
def test_arguments_the_function_takes_are_sent(
    app: App, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    @app.task
    def strict(a: int, b: int = 0) -> None: ...

    sent, named, _ = app.codec.decode_body(
        app.message(strict, args, kwargs).body, "application/json"
    )

    assert (tuple(sent), named) == (args, kwargs)


def test_arguments_of_open_and_keyword_only_signatures_are_checked_too(app: App) -> None:
    @app.task
    def many(*items: int, **more: int) -> None: ...

    @app.task
    def named(a: int, *, b: int) -> None: ...

    app.message(many, (1, 2, 3), {"x": 1})
    app.message(named, (1,), {"b": 2})
    with pytest.raises(TypeError, match="'b'"):
        app.message(named, (1,))


def test_the_context_is_no_argument_of_the_caller(app: App) -> None:
    @app.task(bind=True)
    def bound(ctx: Context, a: int) -> None: ...

    app.message(bound, (1,))
    with pytest.raises(TypeError):
        app.message(bound, (1, 2))


def test_a_bound_task_without_a_place_for_the_context_is_refused(app: App) -> None:
    with pytest.raises(ConfigError, match="bind=True"):
        app.task(bind=True)(lambda: None)  # type: ignore[misc,arg-type]


def test_a_builtin_can_be_a_task(app: App) -> None:
    assert app.message(app.task(name="builtin.min")(min), ((1, 2),)).task == "builtin.min"


def test_ids_are_ulids_and_the_message_id_is_fresh_where_the_task_id_is_brought(app: App) -> None:
    one, two = app.message("work"), app.message("work")
    mine = app.message("work", task_id="order-5")

    assert len(one.task_id) == 26
    assert one.task_id < two.task_id
    assert one.message_id == one.task_id == one.root_id
    assert mine.task_id == "order-5"
    assert mine.message_id not in ("order-5", two.message_id)


def test_an_id_source_can_be_given(make_app: AppMaker) -> None:
    numbers = iter(range(100))
    app = make_app(id_source=lambda: f"id-{next(numbers)}")

    assert app.message("work").task_id == "id-0"


def test_a_task_of_another_app_is_refused(app: App, make_app: AppMaker) -> None:
    foreign = make_app(name="other").task(name="theirs")(lambda: None)

    with pytest.raises(ConfigError, match="another app"):
        app.submit(foreign)


def test_a_task_is_not_pickled_by_accident(app: App) -> None:
    task = app.task(name="mine")(lambda: None)

    with pytest.raises(TypeError, match="'mine'"):
        pickle.dumps(task)


def test_what_is_no_task_is_refused(app: App) -> None:
    with pytest.raises(ConfigError, match="a task or the name of one"):
        app.submit(len)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="decorates a function"):
        app.task(name="x")("text")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="keywords"):
        app.task("name")  # type: ignore[call-overload]


def test_a_task_class_can_be_given(make_app: AppMaker) -> None:
    class Loud(Task[Any, Any]):
        def invoke(self, context: Any, args: Any, kwargs: Any) -> str:
            return str(super().invoke(context, args, kwargs)).upper()

    app = make_app(task_class=Loud)

    assert app.task(lambda: "quiet").invoke(None, (), {}) == "QUIET"  # type: ignore[arg-type]
