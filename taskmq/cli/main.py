"""The entry point: the catalogue of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

import click

from taskmq._version import __version__
from taskmq.cli.codes import CORRUPT, FAILED, INTERRUPTED, MISUSE
from taskmq.cli.group import Entry, LazyGroup
from taskmq.cli.output import complain, show_trace
from taskmq.cli.project import BrokenProject
from taskmq.errors import ConfigError, TaskMQError, TransportCorrupt

CATALOGUE = {
    "worker": Entry("taskmq.cli.worker:worker", "Run tasks."),
    "call": Entry("taskmq.cli.call:call", "Submit one task by name and print its id."),
    "status": Entry("taskmq.cli.status:status", "Show what waits, how long, and who serves it."),
    "peek": Entry("taskmq.cli.peek:peek", "Show the next messages in the order they are taken."),
    "why": Entry("taskmq.cli.why:why", "Say the one reason why a task waits."),
    "result": Entry("taskmq.cli.result:result", "Show what a task returned or how it ended."),
    "dlq": Entry("taskmq.cli.dlq:dlq", "List, show, replay and drop dead letters."),
    "queue": Entry("taskmq.cli.queues:queue", "List, pause and resume queues."),
    "purge": Entry("taskmq.cli.queues:purge", "End all messages that wait in queues as revoked."),
    "revoke": Entry("taskmq.cli.revoke:revoke", "Never start these tasks."),
    "events": Entry("taskmq.cli.events:events", "Follow what happens, as lines of JSON."),
    "list": Entry("taskmq.cli.tasks:tasks", "List the tasks of the application."),
    "doctor": Entry("taskmq.cli.doctor:doctor", "Check the installation, the store and the app."),
    "config": Entry("taskmq.cli.config:config", "Show or check the settings."),
    "demo": Entry("taskmq.cli.demo.command:demo", "See urgent work overtake real bulk work."),
}

# Celery's commands that a Celery user tries here.
LATER = {
    "beat": "the periodic process is not there yet; let cron run `taskmq call` for now.",
    "inspect": "use `taskmq status`, `taskmq list` and `taskmq why`, which need no worker's answer.",
    "control": "use `taskmq revoke` and `taskmq queue pause|resume`.",
    "multi": "start `taskmq worker` from systemd, supervisor or a container instead.",
    "graph": "there are no bootsteps to draw.",
    "amqp": "there is no AMQP shell here; `taskmq status` and `taskmq peek` look into the queues.",
    "migrate": "the store is migrated when it is opened.",
    "upgrade": "settings are read in all of Celery's spellings; `taskmq config check` reports them.",
    "shell": "import your application in `python`.",
    "report": "use `taskmq doctor`.",
    "flower": "Flower does not read TaskMQ; use `taskmq status` and `taskmq events`.",
}


@click.group(
    cls=LazyGroup,
    catalogue=CATALOGUE,
    later=LATER,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`taskmq COMMAND --help` explains a command; docs/cli.md explains them all.",
)
@click.version_option(__version__, prog_name="taskmq", message="%(prog)s %(version)s")
def cli() -> None:
    """A Celery-compatible task queue on a strict-priority engine."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code and print no traceback for errors that are explained."""
    try:
        code = cli.main(
            args=None if arguments is None else list(arguments),
            prog_name="taskmq",
            standalone_mode=False,
        )
    except click.UsageError as error:
        # click prints the usage line and the hint to --help, as people know it.
        error.show()
        return MISUSE
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except ConfigError as error:
        complain(str(error))
        return MISUSE
    except BrokenProject as error:
        show_trace(error.trace)
        complain(str(error))
        return FAILED
    except TaskMQError as error:
        complain(str(error))
        return CORRUPT if isinstance(error, TransportCorrupt) else FAILED
    except Exception as error:
        # Not foreseen, ours or the application's: a report needs the traceback, a person the last line.
        traceback.print_exception(error)
        complain(f"{type(error).__name__}: {error}")
        return FAILED
    return code if isinstance(code, int) else 0
