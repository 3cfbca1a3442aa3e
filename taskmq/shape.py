"""The parameters of a task's function: whether a call fits, and what its concurrency key is.

Checked where the call is made, so that a wrong call fails there and not later in a worker.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskmq.errors import ConfigError, nearest

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Shape:
    """The parameters a caller fills in (without the context of a bound task)."""

    def __init__(self, fn: Callable[..., Any], *, bind: bool, name: str) -> None:
        self._name = name
        self._signature = _signature(fn, bind=bind, name=name)
        self._low = 0
        self._high = -1
        if self._signature is None:
            return
        parameters = self._signature.parameters.values()
        positional = [p for p in parameters if p.kind in _POSITIONAL]
        needs_keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
        if not needs_keyword:
            # What a call by position alone needs; most calls are decided by these two numbers.
            self._low = sum(p.default is p.empty for p in positional)
            open_end = any(p.kind is p.VAR_POSITIONAL for p in parameters)
            self._high = len(positional) if not open_end else 1 << 30

    def has(self, parameter: str) -> bool:
        """Whether the function names this parameter."""
        return self._signature is not None and parameter in self._signature.parameters

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """`TypeError`, as calling the function would raise, when the arguments do not fit."""
        if not kwargs and self._low <= len(args) <= self._high:
            return
        if self._signature is not None:
            self._bound(args, kwargs)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        assert self._signature is not None
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as exc:
            raise TypeError(f"task {self._name}: {exc}") from None

    def check_template(self, template: str) -> None:
        """`ConfigError` for a concurrency key that names something which is no parameter."""
        import string

        try:
            fields = [
                field for _, field, _, _ in string.Formatter().parse(template) if field is not None
            ]
        except ValueError as exc:
            raise ConfigError(f"task {self._name}: concurrency_key {template!r}: {exc}") from None
        if self._signature is None:
            return
        parameters = self._signature.parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return
        for field in fields:
            root = field.split(".")[0].split("[")[0]
            if root not in parameters:
                likely = nearest(root, parameters)
                raise ConfigError(
                    f"task {self._name}: concurrency_key {template!r} names {root!r}, which is no "
                    f"parameter of the function.{likely}"
                )

    def key(self, rule: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The concurrency key of one call: the template filled in, or what the function returns.

        A callable may return None for a call without a key. Raises `ConfigError` when the rule cannot be
        applied to these arguments.
        """
        try:
            if callable(rule):
                value = rule(*args, **kwargs)
            elif self._signature is None:
                value = rule.format(*args, **kwargs)
            else:
                value = rule.format(**_named(self._bound(args, kwargs)))
        except (LookupError, AttributeError, ValueError, TypeError) as exc:
            raise ConfigError(
                f"task {self._name}: concurrency_key {rule!r} does not work out for these arguments: "
                f"{type(exc).__name__}: {exc}"
            ) from exc
        if value is None or (isinstance(value, str) and value):
            return value
        raise ConfigError(
            f"task {self._name}: concurrency_key gave {value!r}; text that is not empty, or None, is accepted"
        )


def _signature(fn: Callable[..., Any], *, bind: bool, name: str) -> inspect.Signature | None:
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None  # built in: calls cannot be checked before they run
    if not bind:
        return signature
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in _POSITIONAL:
        return signature.replace(parameters=parameters[1:])
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return signature
    raise ConfigError(f"task {name}: bind=True passes the context first, the function takes none")


def _named(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Every argument by name, defaults and `**kwargs` included."""
    bound.apply_defaults()
    values = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(values.pop(name))
    return values
