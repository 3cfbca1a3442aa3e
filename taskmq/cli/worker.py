"""`taskmq worker`: Celery's worker flags, in Celery's spellings, as options of a `Worker`."""

from __future__ import annotations

import math
import os
import socket
from contextlib import ExitStack
from typing import Any

import click

from taskmq.cli.codes import HELD
from taskmq.cli.group import Command
from taskmq.cli.known import note_unknown_queues
from taskmq.cli.logs import LEVELS, set_up_logging
from taskmq.cli.options import queue_names, queues_option, seconds
from taskmq.cli.output import complain, note
from taskmq.cli.pidfile import PidFile, PidFileHeld
from taskmq.cli.session import Session
from taskmq.errors import ConfigError, TransportError

# Celery's name of the pool of processes in old versions.
_POOL_ALIASES = {"processes": "prefork"}
_POOLS_LATER = ("gevent", "eventlet")
# What these turn off in Celery, workers here do not do in the first place.
_NOTHING_OF_THE_KIND = {
    "without_gossip": "workers do not talk to each other",
    "without_mingle": "a worker does not wait for others at its start",
    "without_heartbeat": "no heartbeat goes through the broker's connection",
}
_LATER = {
    "autoscale": "--autoscale is not there yet: use -c/--concurrency",
    "detach": "-D/--detach is not there: let systemd, supervisor or a container run the worker",
    "beat": "-B/--beat is not there yet: the periodic process is a later part",
}


def _pool(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    if value in _POOLS_LATER:
        raise click.BadParameter(f"{value} is not there yet; use asyncio or threads")
    return _POOL_ALIASES.get(value, value)


def _later(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        raise click.UsageError(_LATER[str(param.name)], ctx)


def _drain(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    if value.lower() == "none":
        return math.inf
    try:
        return seconds(ctx, param, float(value))
    except ValueError:
        raise click.BadParameter(f"seconds from 0 or 'none', got {value!r}") from None


def _level(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    if value.upper() not in LEVELS:
        raise click.BadParameter(f"one of {', '.join(LEVELS)}, got {value!r}")
    return value.upper()


@click.command(cls=Command)
@queues_option("Consume these; without it those of the settings and the default queue.")
@click.option(
    "-X",
    "--exclude-queues",
    multiple=True,
    metavar="NAMES",
    callback=queue_names,
    help="But not these.",
)
@click.option("-c", "--concurrency", type=int, metavar="N", help="Slots; the number of CPUs.")
@click.option(
    "-P",
    "--pool",
    type=click.Choice(["prefork", "threads", "solo", "asyncio", *_POOL_ALIASES, *_POOLS_LATER]),
    callback=_pool,
    help="Where tasks run; what the settings say, or prefork.",
)
@click.option(
    "--prefetch", type=int, metavar="N", help="Messages held, running ones included; = slots."
)
@click.option("--prefetch-multiplier", type=int, metavar="N", help="The same as N times the slots.")
@click.option("--max-tasks-per-child", type=int, metavar="N", help="Then replace the child.")
@click.option("--max-memory-per-child", type=int, metavar="KIB", help="Above that replace it.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Hard limit of a run.")
@click.option("--soft-time-limit", type=float, metavar="SECONDS", help="Raises inside the task.")
@click.option(
    "--drain-timeout",
    metavar="SECONDS|none",
    callback=_drain,
    help="How long running tasks have after TERM.",
)
@click.option("--start-method", type=click.Choice(["fork", "spawn"]), help="Of prefork children.")
@click.option("-n", "--hostname", default="", metavar="NAME", help="Its name; %h is the host's.")
@click.option("-E", "--task-events", "--events", is_flag=True, help="Write events.")
@click.option(
    "-l",
    "--loglevel",
    callback=_level,
    metavar="LEVEL",
    help=f"One of {', '.join(LEVELS)}. Default: what the worker does and what goes wrong; with INFO each "
    "task too.",
)
@click.option("-f", "--logfile", metavar="PATH", help="Log there instead of stderr.")
@click.option("--pidfile", metavar="PATH", help="Held while it runs; exit code 5 when it is.")
@click.option(
    "-O",
    "optimization",
    type=click.Choice(["fair"]),
    help="Accepted: a task always goes to a free slot, never behind a long one.",
)
@click.option("--without-gossip", is_flag=True, help="Accepted: there is none.")
@click.option("--without-mingle", is_flag=True, help="Accepted: there is none.")
@click.option("--without-heartbeat", is_flag=True, help="Accepted: there is none.")
@click.option(
    "--autoscale", expose_value=False, callback=_later, metavar="MAX,MIN", help="Not there yet."
)
@click.option(
    "-D", "--detach", is_flag=True, expose_value=False, callback=_later, help="Not there."
)
@click.option(
    "-B", "--beat", is_flag=True, expose_value=False, callback=_later, help="Not there yet."
)
@click.pass_context
def worker(
    ctx: click.Context,
    /,
    queues: list[str],
    exclude_queues: list[str],
    concurrency: int | None,
    prefetch: int | None,
    prefetch_multiplier: int | None,
    hostname: str,
    task_events: bool,
    loglevel: str | None,
    logfile: str | None,
    pidfile: str | None,
    optimization: str | None,
    **options: Any,
) -> int:
    """Run tasks.

    A free slot takes the most urgent visible message of all its queues. TERM (or Ctrl-C) stops taking new
    ones, hands back what has not started and lets running tasks end within --drain-timeout; a second one,
    or QUIT, stops at once.
    """
    ignored = [name for name in _NOTHING_OF_THE_KIND if options.pop(name)]
    session = Session.of(ctx)
    with ExitStack() as stack:
        if pidfile:
            try:
                stack.enter_context(PidFile(expand(pidfile, hostname)))
            except PidFileHeld as held:
                complain(str(held))
                return HELD
        session.refuse_memory()
        app = session.required_app()
        # After the project was imported: it may have set logging up itself.
        set_up_logging(loglevel, expand(logfile, hostname) if logfile else None)
        for name in ignored:
            note(f"--{name.replace('_', '-')} changes nothing: {_NOTHING_OF_THE_KIND[name]}")
        from taskmq.worker.options import WorkerOptions
        from taskmq.worker.worker import Worker

        pool = options["pool"] or app.config.pool
        slots = 1 if pool == "solo" else concurrency or app.config.slots
        if prefetch_multiplier is not None:
            prefetch = _multiplied(prefetch, prefetch_multiplier, slots)
        _note_misspelt(session, [*queues, *exclude_queues])
        if exclude_queues:
            named = queues or [app.config.default_queue, *app.config.queues]
            queues = [name for name in dict.fromkeys(named) if name not in exclude_queues]
            if not queues:
                raise ConfigError("-X/--exclude-queues leaves no queue to consume")
        wanted = WorkerOptions(
            queues=queues,
            concurrency=concurrency,
            prefetch=prefetch,
            name=expand(hostname, hostname),
            app_spec=session.app_spec,
            as_celery=session.as_celery,
            events=True if task_events else None,
            **options,
        )
        return Worker(app, wanted).run()


def _note_misspelt(session: Session, names: list[str]) -> None:
    """Notes before it starts: a worker of a misspelt queue looks healthy and never gets a message."""
    try:
        note_unknown_queues(session, names)
    except TransportError:
        pass  # the worker meets it again, and has exit codes for it


def _multiplied(prefetch: int | None, multiplier: int, slots: int) -> int:
    if prefetch is not None:
        raise ConfigError("--prefetch or --prefetch-multiplier, not both")
    if multiplier < 1:
        # Celery's 0 means without a bound; held messages are bounded here, or nothing could yield.
        raise ConfigError(f"--prefetch-multiplier: an int from 1, got {multiplier}")
    return multiplier * slots


def expand(text: str, hostname: str) -> str:
    """Celery's placeholders: %h host, %n name before the @, %d domain, %p whole name, %% a percent sign.

    %i and %I number pool children in Celery; here all of them write to the worker's one file.
    """
    host = socket.gethostname()
    name = hostname.replace("%h", host).replace("%n", host.split(".")[0]) or f"{host}-{os.getpid()}"
    values = {
        "%": "%",
        "h": host,
        "n": name.partition("@")[0],
        "d": host.partition(".")[2],
        "p": name,
        "i": "0",
        "I": "",
    }
    out, rest = "", text
    while rest:
        before, percent, rest = rest.partition("%")
        out += before
        if percent:
            out += values.get(rest[:1], "%" + rest[:1])
            rest = rest[1:]
    return out
