"""Exceptions as bytes and back: writing never raises, reading trusts nothing (CVE-2021-23727)."""

from __future__ import annotations

import enum
import json
import sys
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from taskmq import errors
from taskmq.codec import (
    allow_modules,
    encode_failure,
    failure_line,
    format_traceback,
    rebuild_failure,
)
from taskmq.errors import RemoteError


class AppError(Exception):
    """Of this test's own module, so the default rule does not allow it."""

    class Inner(Exception):
        pass


class PickyError(Exception):
    def __init__(self, user: str, *, code: int) -> None:
        super().__init__(f"{user}: {code}")


class Hostile(Exception):
    """Everything about it raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


class HostileArgs(Exception):
    @property
    def args(self) -> Any:  # type: ignore[override]
        raise ValueError("no args for you")


def stored(exc_type: Any, exc_module: Any, exc_message: Any = ("boom",)) -> bytes:
    return json.dumps(
        {"exc_type": exc_type, "exc_module": exc_module, "exc_message": exc_message}
    ).encode()


def caught(exc: BaseException) -> BaseException:
    try:
        raise exc
    except BaseException as raised:
        return raised


def test_failure_has_the_form_celery_stores() -> None:
    assert json.loads(encode_failure(ValueError("bang", 5))) == {
        "exc_type": "ValueError",
        "exc_module": "builtins",
        "exc_message": ["bang", 5],
    }


def test_nested_class_is_named_by_its_qualified_name() -> None:
    assert json.loads(encode_failure(AppError.Inner()))["exc_type"] == "AppError.Inner"


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("boom", 5, None, [1, {"a": Decimal("1.5")}]),
        KeyError("key"),
        OSError(2, "No such file", "x"),
        errors.TaskRevoked("by hand"),
        errors.NotRegistered("no task 'x'"),
    ],
)
def test_known_exception_comes_back_as_itself(exc: Exception) -> None:
    back = rebuild_failure(encode_failure(exc))

    assert type(back) is type(exc)
    assert back.args == exc.args
    assert str(back) == str(exc)


def test_exception_of_the_app_comes_back_where_its_module_is_allowed() -> None:
    allow = allow_modules(__name__)

    assert type(rebuild_failure(encode_failure(AppError("x")), allow=allow)) is AppError
    assert type(rebuild_failure(encode_failure(AppError.Inner()), allow=allow)) is AppError.Inner


def test_exception_of_a_module_that_is_not_allowed_is_remote() -> None:
    back = rebuild_failure(encode_failure(AppError("x", 5)))

    assert type(back) is RemoteError
    assert str(back) == f"{__name__}.AppError: x, 5"
    assert (back.exc_type, back.exc_module, back.exc_args) == ("AppError", __name__, ("x", 5))


def test_rule_allows_a_package_and_what_is_inside_it() -> None:
    allow = allow_modules("shop", "builtins")

    assert allow("shop", "X")
    assert allow("shop.errors", "X")
    assert not allow("shopping", "X")
    assert not allow("", "X")


def test_class_that_takes_other_parameters_is_remote() -> None:
    back = rebuild_failure(encode_failure(PickyError("ann", code=3)), allow=allow_modules(__name__))

    assert type(back) is RemoteError
    assert "PickyError: ann: 3" in str(back)


def not_an_exception() -> None:
    raise AssertionError("called")


class Meta(type):
    def __call__(cls, *args: Any) -> Any:
        raise AssertionError("called")


class NotAnException(metaclass=Meta):
    pass


@pytest.mark.parametrize(
    ("exc_module", "exc_type"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "type"),
        ("builtins", "object"),
        ("builtins", "KeyboardInterrupt"),
        ("builtins", "SystemExit"),
        ("builtins", "BaseException"),
        ("builtins", "Exception.__subclasses__"),
        ("builtins", "Exception.__class__"),
        ("builtins", "Exception.__init__"),
        ("builtins", "__import__"),
        ("builtins", "<lambda>"),
        ("builtins", "f.<locals>.E"),
        ("builtins", ""),
        ("builtins", "."),
        ("builtins", "Exception."),
        ("subprocess", "Popen"),
        ("subprocess", "CalledProcessError"),
        ("nosuchmodule", "ValueError"),
        ("", "ValueError"),
        (None, "ValueError"),
        (5, "ValueError"),
        (["builtins"], "ValueError"),
        ("taskmq.codec.failures", "json.JSONDecodeError"),
        ("taskmq.codec.failures", "sys.exit"),
        ("taskmq", "App"),
        ("taskmq.errors", "nearest"),
        ("taskmq.errors", "Iterable"),
        (__name__, "not_an_exception"),
        (__name__, "NotAnException"),
        (__name__, "sys.exit"),
    ],
)
def test_hostile_name_is_never_called(exc_module: Any, exc_type: str) -> None:
    allow = allow_modules("builtins", "taskmq", __name__)

    back = rebuild_failure(stored(exc_type, exc_module, ["touch /nowhere"]), allow=allow)

    assert type(back) is RemoteError


def test_allowing_one_module_does_not_allow_what_it_imported() -> None:
    # This module holds JSONDecodeError only by way of `json`; give it the name directly.
    here = sys.modules[__name__]
    here.Borrowed = json.JSONDecodeError  # type: ignore[attr-defined]
    try:
        back = rebuild_failure(
            stored("Borrowed", __name__, ["m", "d", 0]), allow=allow_modules(__name__)
        )
    finally:
        del here.Borrowed

    assert type(back) is RemoteError


def test_module_attribute_hook_is_not_run() -> None:
    trap = ModuleType("taskmq_trap")
    trap.__getattr__ = lambda name: pytest.fail("looked up through __getattr__")  # type: ignore[method-assign]
    sys.modules["taskmq_trap"] = trap
    try:
        back = rebuild_failure(
            stored("ValueError", "taskmq_trap"), allow=allow_modules("taskmq_trap")
        )
    finally:
        del sys.modules["taskmq_trap"]

    assert type(back) is RemoteError


def test_module_that_is_not_imported_stays_so() -> None:
    assert "this" not in sys.modules

    rebuild_failure(stored("ValueError", "this"), allow=lambda module, name: True)

    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"5",
        b"{}",
        b'{"exc_type": 5}',
        b'{"exc_type": ["ValueError"], "exc_module": "builtins"}',
        b"[" * 100_000,
    ],
)
def test_failure_that_cannot_be_read_says_so(body: bytes | None) -> None:
    back = rebuild_failure(body)

    assert type(back) is RemoteError
    assert "cannot be read" in str(back)


@pytest.mark.parametrize(
    ("message", "args"), [("text", ("text",)), (None, (None,)), ({"a": 1}, ({"a": 1},)), ([], ())]
)
def test_message_of_any_shape_becomes_arguments(message: Any, args: tuple[Any, ...]) -> None:
    assert rebuild_failure(stored("ValueError", "builtins", message)).args == args


def test_malformed_typed_argument_is_left_as_it_came() -> None:
    wrong = {"__type__": "datetime", "__value__": "x"}

    assert rebuild_failure(stored("ValueError", "builtins", [wrong])).args == (wrong,)


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("exc", "message"),
    [
        (ValueError(Colour.RED), ["<Colour.RED: 1>"]),
        (ValueError(float("nan")), ["nan"]),
        (ValueError("\ud800"), ["\\ud800"]),
        (ValueError(["\ud800"]), ["['\\ud800']"]),
        (Hostile("x"), ["x"]),
        (ValueError(Hostile()), ["<Hostile: repr() raised RuntimeError>"]),
    ],
)
def test_argument_that_cannot_be_sent_is_its_repr(exc: Exception, message: list[Any]) -> None:
    assert json.loads(encode_failure(exc))["exc_message"] == message


def test_exception_whose_args_raise_is_still_told() -> None:
    failure = json.loads(encode_failure(HostileArgs()))

    assert failure["exc_type"] == "HostileArgs"
    assert len(failure["exc_message"]) == 1


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("x" * 10_000_000),
        ValueError(*["x" * 60_000] * 20),
        ValueError(["x" * 60_000] * 20),
        ValueError("☃" * 60_000),
        Hostile("x" * 10_000_000),
    ],
)
def test_failure_is_bounded(exc: Exception) -> None:
    body = encode_failure(exc)

    assert len(body) <= 64 * 1024
    assert json.loads(body)["exc_type"] == type(exc).__name__


def test_class_with_odd_names_is_told() -> None:
    odd = type("Odd", (Exception,), {"__module__": 5})

    assert json.loads(encode_failure(odd("x")))["exc_module"] == "builtins"


@pytest.mark.parametrize(
    ("exc", "line"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (ValueError(), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError("a\nb\x1b[31m"), "ValueError: a\\nb\\x1b[31m"),
        (Hostile("x"), "Hostile: <Hostile: str() raised RuntimeError>"),
    ],
)
def test_failure_line_is_one_safe_line(exc: Exception, line: str) -> None:
    assert failure_line(exc) == line


def test_failure_line_is_short() -> None:
    assert len(failure_line(ValueError("x" * 10_000))) < 600


def test_traceback_names_the_frames_and_the_error() -> None:
    text = format_traceback(caught(ValueError("boom")))

    assert text.startswith("Traceback (most recent call last):")
    assert "raise exc\nValueError: boom\n" in text


def test_long_traceback_keeps_its_beginning_and_its_end() -> None:
    text = format_traceback(caught(ValueError("x" * 1_000_000 + " the end")))

    assert len(text) <= 64 * 1024
    assert text.startswith("Traceback")
    assert "characters left out" in text
    assert text.rstrip().endswith("the end")


def test_traceback_can_be_stored_as_text() -> None:
    text = format_traceback(caught(ValueError("\ud800\x00")))

    text.encode("utf-8")
    assert "\x00" not in text


def test_traceback_of_a_hostile_exception_is_told() -> None:
    assert "Hostile" in format_traceback(caught(Hostile("x")))


def test_class_may_say_under_which_module_it_is_written_and_what_inherits_does_not() -> None:
    told = type("Told", (Exception,), {"__wire_module__": "elsewhere.errors"})
    inherits = type("Inherits", (told,), {"__module__": "here"})
    odd = type("Odd", (Exception,), {"__wire_module__": 5, "__module__": "here"})

    modules = [json.loads(encode_failure(kind()))["exc_module"] for kind in (told, inherits, odd)]

    assert modules == ["elsewhere.errors", "here", "here"]
