"""Signatures, chains, groups and chords."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from taskmq.compat import Celery, Signature, chain, chord, group, maybe_signature, signature
from taskmq.compat._missing import NotThereYet
from taskmq.compat.exceptions import ChordError, ImproperlyConfigured, NotRegistered
from tests.compat.conftest import MakeApp, MakeWorker


@pytest.fixture
def tasks(app: Celery) -> Any:
    """add, total, boom, note and `noted`, what note was called with."""

    class Tasks:
        noted: list[Any] = []  # noqa: RUF012 - made anew for each test
        add = app.task(name="add")(lambda x, y=0: x + y)
        total = app.task(name="total")(lambda xs: sum(xs))
        boom = app.task(name="boom")(lambda *_: 1 / 0)
        note = app.task(name="note")(lambda *args: Tasks.noted.append(list(args)))
        told = app.task(name="told")(lambda task_id: Tasks.noted.append([task_id]))

    return Tasks


# -- signatures -----------------------------------------------------------------------------------


def test_signature_is_a_mapping_that_survives_json_pickle_and_copies(tasks: Any) -> None:
    sig = tasks.add.s(1, y=2).set(priority=3, queue="q")

    assert dict(sig) == {
        "task": "add",
        "args": (1,),
        "kwargs": {"y": 2},
        "options": {"priority": 3, "queue": "q"},
        "subtask_type": None,
        "immutable": False,
    }
    for copied in (signature(json.loads(json.dumps(sig))), pickle.loads(pickle.dumps(sig))):
        assert (copied.task, list(copied.args), copied.options) == ("add", [1], sig.options)
    deep = copy.deepcopy(sig)
    deep.kwargs["y"] = 9
    assert sig.kwargs == {"y": 2}


def test_signature_is_called_submitted_or_applied(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    sig = tasks.add.s(2)
    results = [sig.delay(1), sig.apply_async((1,), queue="celery"), sig.apply((1,))]
    make_worker(app).run_until_idle()

    assert sig(1) == 3
    assert [r.get() for r in results] == [3, 3, 3]


def test_more_arguments_come_first_unless_it_is_immutable(tasks: Any) -> None:
    assert tasks.add.s(2).clone((1,)).args == (1, 2)
    assert tasks.add.si(2).clone((1,)).args == (2,)
    assert tasks.add.signature((1,), {"y": 5}, countdown=3).options == {"countdown": 3}
    assert tasks.add.s(1).set(immutable=True).immutable


def test_changing_a_copy_leaves_the_original(tasks: Any) -> None:
    sig = tasks.add.s(1)
    sig.clone(priority=5).set(queue="q")
    sig.replace(args=(9,))

    assert (sig.options, sig.args) == ({}, (1,))


def test_id_can_be_settled_before_the_call(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    sig = tasks.add.s(1)
    result = sig.freeze()
    sig.delay()
    make_worker(app).run_until_idle()

    assert sig.id == result.id
    assert result.get() == 1


def test_signature_by_name_is_submitted_through_the_app(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    result = app.signature("add", (1, 2)).delay()
    make_worker(app).run_until_idle()

    assert result.get() == 3
    with pytest.raises(NotRegistered):
        _ = app.signature("unknown").type


def test_what_is_no_signature_is_refused(tasks: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="signatures like"):
        maybe_signature(3)
    assert maybe_signature(None) is None
    with pytest.raises(TypeError):
        tasks.add.s(1) | 3


def test_signature_is_shown_as_it_would_be_written(tasks: Any) -> None:
    assert repr(tasks.add.s(1, y=2)) == "add(1, y=2)"
    assert repr(tasks.add.s(1) | tasks.add.s(2)) == "add(1) | add(2)"


# -- chains ---------------------------------------------------------------------------------------


def test_chain_gives_each_step_the_result_of_the_one_before(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    worker = make_worker(app)
    results = [
        chain(tasks.add.s(1, 2), tasks.add.s(10), tasks.add.s(100))(),
        (tasks.add.s(1, 2) | tasks.add.s(10) | tasks.add.s(100)).delay(),
        chain([tasks.add.s(1, 2), tasks.add.s(10), tasks.add.s(100)]).apply_async(),
        chain(tasks.add.s(2), tasks.add.s(10), tasks.add.s(100)).apply_async((1,)),
        chain(tasks.add.s(0), tasks.add.si(13), tasks.add.s(100)).apply_async((1,)),
    ]
    worker.run_until_idle()

    assert [r.get() for r in results] == [113] * 5
    assert results[0].parent.get() == 13
    assert results[0].parent.parent.get() == 3


def test_step_that_fails_ends_the_chain_and_calls_its_error_callback_once(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    result = chain(tasks.add.s(1), tasks.boom.s(), tasks.add.s(1)).on_error(tasks.told.s())()
    make_worker(app).run_until_idle()

    assert result.state == "FAILURE"
    assert result.parent.state == "FAILURE"
    assert tasks.noted == [[result.parent.id]]


def test_chain_of_nothing_gives_nothing(tasks: Any) -> None:
    assert chain().apply_async() is None


def test_options_of_a_chain_reach_every_step(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    seen: list[Any] = []

    @app.task(bind=True, name="where")
    def where(self: Any, *_: Any) -> None:
        seen.append(self.request.delivery_info["routing_key"])

    chain(where.s(), where.s(), where.s().set(queue="own")).apply_async(queue="q")
    make_worker(app, queues=["q", "own"]).run_until_idle()

    assert seen == ["q", "q", "own"]


def test_steps_are_routed_by_the_project(make_app: MakeApp, make_worker: MakeWorker) -> None:
    app = make_app(task_routes={"second": {"queue": "other"}})
    seen: list[str] = []
    for name in ("first", "second"):
        app.task(bind=True, name=name)(
            lambda self, *_: seen.append(self.request.delivery_info["routing_key"])
        )

    chain(app.tasks["first"].si(), app.tasks["second"].si())()
    make_worker(app, queues=["celery", "other"]).run_until_idle()

    assert seen == ["celery", "other"]


def test_result_of_a_frozen_chain_is_that_of_its_submit(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    workflow = chain(tasks.add.s(1, 2), tasks.add.s(10))
    frozen = workflow.freeze()
    sent = workflow.apply_async()
    make_worker(app).run_until_idle()

    assert frozen.id == sent.id
    assert (frozen.get(), frozen.parent.get()) == (13, 3)


# -- groups and chords ----------------------------------------------------------------------------


def test_group_gives_its_results_in_order(app: Celery, tasks: Any, make_worker: MakeWorker) -> None:
    worker = make_worker(app)
    results = [
        group(tasks.add.s(i, i) for i in range(3))(),
        group(tasks.add.s(0), tasks.add.s(2), tasks.add.s(4)).delay(),
        group([tasks.add.s(i) for i in range(3)]).apply_async(kwargs={"y": 0}),
    ]
    before = results[0].completed_count(), results[0].ready(), results[0].waiting()
    worker.run_until_idle()

    assert before == (0, False, True)
    assert [r.get() for r in results] == [[0, 2, 4], [0, 2, 4], [0, 1, 2]]
    assert results[0].successful()
    assert results[0].completed_count() == 3
    assert group([])().get() == []


def test_failure_in_a_group_is_raised_at_its_place(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    result = group(tasks.add.s(1), tasks.boom.s())()
    make_worker(app).run_until_idle()

    assert result.failed()
    with pytest.raises(ZeroDivisionError):
        result.get()
    values = result.join(propagate=False)
    assert values[0] == 1
    assert isinstance(values[1], ZeroDivisionError)


def test_group_of_results_is_revoked_and_forgotten_together(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    result = group(tasks.note.s(1), tasks.note.s(2))()
    result.revoke()
    make_worker(app).run_until_idle()

    assert [r.state for r in result] == ["REVOKED", "REVOKED"]
    assert tasks.noted == []
    result.forget()
    assert [r.state for r in result] == ["PENDING", "PENDING"]
    with pytest.raises(NotThereYet):
        result.save()


def test_chord_gives_its_body_the_results_in_order(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    worker = make_worker(app)
    results = [
        chord((tasks.add.s(i, i) for i in range(3)), tasks.total.s())(),
        chord(tasks.add.s(i, i) for i in range(3))(tasks.total.s()),
        (group(tasks.add.s(i, i) for i in range(3)) | tasks.total.s()).delay(),
        chain(tasks.add.s(0, 0), group(tasks.add.s(2), tasks.add.s(4)), tasks.total.s())(),
        chord([], tasks.total.s())(),
    ]
    worker.run_until_idle()

    assert [r.get() for r in results] == [6, 6, 6, 6, 0]
    assert results[0].parent.get() == [0, 2, 4]


def test_member_that_fails_fails_the_body_and_its_error_callback_is_called_once(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    body = tasks.total.s().on_error(tasks.note.s())
    result = chord([tasks.boom.s(), tasks.add.s(1), tasks.boom.s()], body)()
    make_worker(app).run_until_idle()

    assert result.state == "FAILURE"
    assert isinstance(result.get(propagate=False), ChordError)
    assert len(tasks.noted) == 1


def test_chord_without_a_body_says_so(tasks: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="no body"):
        chord([tasks.add.s(1)])()


def test_workflows_survive_json(app: Celery, tasks: Any, make_worker: MakeWorker) -> None:
    app.set_current()
    workflow = chain(tasks.add.s(1), group(tasks.add.s(1), tasks.add.s(2)), tasks.total.s())

    back = Signature.from_dict(json.loads(json.dumps(workflow)), app=app)
    result = back.delay()
    make_worker(app).run_until_idle()

    assert isinstance(back, chain)
    assert result.get() == 5


def test_link_of_a_workflow_follows_its_end(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    chain(tasks.add.s(1), tasks.add.s(2)).set(link=tasks.note.s())()
    members = group(tasks.add.s(1), tasks.add.s(2))
    members.link(tasks.note.si("each"))
    members()
    make_worker(app).run_until_idle()

    assert sorted(tasks.noted, key=str) == [["each"], ["each"], [3]]


def test_workflow_submitted_in_a_task_is_its_child(
    app: Celery, tasks: Any, make_worker: MakeWorker
) -> None:
    parent = app.task(name="parent")(lambda: str(chain(tasks.add.s(1), tasks.add.s(2))()))
    result = parent.delay()
    make_worker(app).run_until_idle()

    assert [child.id for child in result.children] == [result.get()]
    assert dict(result.collect())[result.children[0]] == 3
