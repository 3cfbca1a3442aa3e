"""When an app opens its stores, where relative paths start, and how it survives threads and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Config
from taskmq.clock import FakeClock
from taskmq.errors import ConfigError, TransportUnavailable
from taskmq.home import calling_module, project_dir
from taskmq.stores import transport_settings
from taskmq.transports.memory import MemoryTransport
from tests.unit.model.conftest import AppMaker


class Counted(MemoryTransport):
    """Counts how often it is opened and closed."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock())
        self.opened = 0
        self.closed = 0
        self.delay = threading.Event()

    def open(self) -> None:
        self.opened += 1

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What `open_transport` was asked for."""
    calls: list[tuple[str, Any]] = []

    def build(url: str, settings: Any, **more: Any) -> Counted:
        calls.append((url, {"settings": settings, **more}))
        return Counted()

    monkeypatch.setattr("taskmq.transports.urls.open_transport", build)
    return calls


def test_declaring_opens_nothing(built: list[Any]) -> None:
    app = App()
    app.task(name="work")(lambda: None)
    app.message("work")
    app.result("x")
    app.close()

    assert built == []


def test_the_first_use_opens_once_for_all_threads(built: list[Any]) -> None:
    app = App()
    transports: set[int] = set()
    ready = threading.Barrier(8)

    def use() -> None:
        ready.wait()
        transports.add(id(app.transport))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(built) == len(transports) == 1


def test_close_is_idempotent_and_the_next_use_opens_again(built: list[Any]) -> None:
    app = App()
    first: Any = app.transport
    app.close()
    app.close()

    assert first.closed == 1
    assert app.transport is not first
    assert len(built) == 2


def test_a_given_transport_is_opened_and_closed_and_opened_again() -> None:
    transport = Counted()
    with App(transport=transport) as app:
        assert transport.opened == 0
        assert app.transport is app.transport is transport
    app.submit("work")

    assert (transport.opened, transport.closed) == (2, 1)
    app.close()


def test_a_transport_that_does_not_open_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Counted()
    app = App(transport=transport)
    with monkeypatch.context() as patch:

        def locked() -> None:
            raise TransportUnavailable("locked")

        patch.setattr(transport, "open", locked)
        with pytest.raises(TransportUnavailable):
            app.submit("work")
    app.submit("work")

    assert transport.opened == 1
    app.close()


def test_the_transport_is_told_what_it_needs_of_the_config(built: list[Any]) -> None:
    app = App(
        broker_url="memory://x",
        max_body=5000,
        max_yields=7,
        lease=9,
        result_expires=None,
        base_dir="/d",
    )
    assert app.transport is not None
    url, told = built[0]

    assert url == "memory://x"
    assert told["settings"] == transport_settings(app.config)
    assert (told["settings"].max_body, told["settings"].lease) == (5000, 9)
    assert told["settings"].result_expires is None
    assert told["clock"] is app.clock
    assert told["random"] is app.random
    assert told["base_dir"] == Path("/d")


def test_results_elsewhere_open_a_second_store(built: list[Any]) -> None:
    app = App(broker_url="memory://a", result_url="memory://b")
    assert app.results is app.results
    assert [url for url, _ in built] == ["memory://b"]
    assert app.transport is not None
    app.close()

    assert [url for url, _ in built] == ["memory://b", "memory://a"]


def test_results_at_the_same_url_are_beside_the_messages(built: list[Any]) -> None:
    app = App(broker_url="memory://a", result_url="memory://a")

    assert app.results is app.transport.results
    assert app.results_with_messages
    assert len(built) == 1


def test_an_unknown_scheme_is_refused_when_the_app_is_built() -> None:
    with pytest.raises(ConfigError, match="carrier-pigeon"):
        App(broker_url="carrier-pigeon://loft")


def test_a_child_does_not_wait_for_a_lock_its_parent_held(built: list[Any]) -> None:
    app = App()
    # As when another thread of the parent was opening at the moment of the fork.
    app._stores._lock.acquire()
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(7 if app.transport is not None else 1)
        finally:
            os._exit(2)

    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_parent_and_child_share_an_app_after_a_fork(make_app: AppMaker, tmp_path: Path) -> None:
    app = make_app(broker_url=f"sqlite:///{tmp_path}/jobs.db")
    app.submit("work", task_id="before")
    pid = os.fork()
    if pid == 0:
        try:
            app.submit("work", task_id="in-child")
            known = [app.result(name).exists() for name in ("before", "in-child")]
            os._exit(0 if all(known) else 1)
        finally:
            os._exit(2)
    app.submit("work", task_id="in-parent")

    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert all(app.result(name).exists() for name in ("before", "in-child", "in-parent"))


class TestHome:
    def module(self, file: Path, name: str) -> dict[str, Any]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return {"__file__": str(file), "__name__": name}

    def test_a_module_is_at_home_where_it_lies(self, tmp_path: Path) -> None:
        assert project_dir(self.module(tmp_path / "jobs.py", "jobs")) == tmp_path

    def test_a_package_is_at_home_above_itself(self, tmp_path: Path) -> None:
        deep = tmp_path / "proj" / "sub"

        assert project_dir(self.module(tmp_path / "proj" / "__init__.py", "proj")) == tmp_path
        assert project_dir(self.module(tmp_path / "proj" / "app.py", "proj.app")) == tmp_path
        assert project_dir(self.module(deep / "app.py", "proj.sub.app")) == tmp_path
        assert project_dir(self.module(deep / "__init__.py", "proj.sub")) == tmp_path

    def test_a_script_is_at_home_above_its_package(self, tmp_path: Path) -> None:
        script = self.module(tmp_path / "proj" / "app.py", "__main__")
        assert project_dir(script) == tmp_path / "proj"
        (tmp_path / "proj" / "__init__.py").touch()

        assert project_dir(script) == tmp_path

    def test_an_installed_package_has_no_home(self, tmp_path: Path) -> None:
        installed = tmp_path / "lib" / "site-packages" / "proj"

        assert project_dir(self.module(installed / "app.py", "proj.app")) is None
        assert project_dir(vars(sys.modules["logging"])) is None

    def test_an_interactive_session_has_no_home(self) -> None:
        assert project_dir({"__name__": "__main__"}) is None

    def test_the_calling_module_is_the_nearest_outside_the_package(self) -> None:
        assert calling_module()["__name__"] == __name__
        assert calling_module("tests")["__name__"].split(".")[0] != "tests"

    def test_an_app_is_at_home_with_the_module_that_makes_it(self) -> None:
        assert App().base_dir == Path(__file__).resolve().parents[3]

    def test_two_programs_started_elsewhere_meet_in_one_file(self, tmp_path: Path) -> None:
        project = tmp_path / "project"
        (project / "proj").mkdir(parents=True)
        (project / "proj" / "__init__.py").touch()
        (project / "proj" / "jobs.py").write_text(
            "from taskmq import App\n"
            "app = App(broker_url='sqlite:///jobs.db')\n"
            "@app.task\n"
            "def work(): ...\n"
            "if __name__ == '__main__':\n"
            "    work.delay(); print(app.transport.describe())\n"
        )
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        printed = set()
        for arguments in (
            [str(project / "proj" / "jobs.py")],
            ["-c", "from proj.jobs import app; app.submit('x'); print(app.transport.describe())"],
        ):
            run = subprocess.run(
                [sys.executable, *arguments],
                cwd=elsewhere,
                env={k: v for k, v in os.environ.items() if k != "TASKMQ_HOME"}
                | {"PYTHONPATH": str(project)},
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
            printed.add(run.stdout.strip())

        assert len(printed) == 1
        assert (project / "jobs.db").is_file()
        assert not list(elsewhere.iterdir())


def test_threads_share_an_app(make_app: AppMaker) -> None:
    app = make_app(Config())
    work = app.task(name="work")(lambda *args: None)

    def submit() -> None:
        for n in range(50):
            work.delay(n)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sum(d.ready for d in app.transport.operators.depth()) == 400
