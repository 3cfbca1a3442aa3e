"""`broker_url`: which transport it names, what is refused, and what is never printed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from taskmq.clock import FakeClock
from taskmq.errors import ConfigError
from taskmq.transports.base import Settings, Transport
from taskmq.transports.memory import MemoryTransport
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.urls import mask_url, open_transport, parse_url


def opened(url: str, **more) -> Transport:
    return open_transport(url, Settings(), clock=FakeClock(), random=Random(0), **more)


def test_three_slashes_are_relative_and_four_absolute() -> None:
    assert parse_url("sqlite:///data/q.db").location == "data/q.db"
    assert parse_url("sqlite:////var/lib/q.db").location == "/var/lib/q.db"


def test_a_windows_drive_needs_no_fourth_slash() -> None:
    assert parse_url("sqlite:///C:/data/q.db").location == "C:/data/q.db"


def test_percent_signs_are_decoded_in_path_and_options() -> None:
    parsed = parse_url("sqlite:///my%20queue.db?mode=06%360")

    assert parsed.location == "my queue.db"
    assert parsed.options == {"mode": "0660"}


def test_a_relative_file_counts_from_the_directory_of_the_project(tmp_path: Path) -> None:
    transport = opened("sqlite:///q.db", base_dir=tmp_path)

    assert isinstance(transport, SQLiteTransport)
    assert transport.describe() == str(tmp_path.resolve() / "q.db")


def test_making_a_transport_opens_nothing(tmp_path: Path) -> None:
    opened(f"sqlite:///{tmp_path}/q.db")

    assert list(tmp_path.iterdir()) == []


def test_memory_without_a_name_is_its_own_each_time() -> None:
    first, second = opened("memory://"), opened("memory://")

    assert isinstance(first, MemoryTransport)
    assert first is not second


def test_memory_of_one_name_is_shared_in_the_process() -> None:
    first = opened("memory://shared-by-name")

    assert opened("memory://shared-by-name") is first
    assert opened("memory://another-name") is not first


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://localhost", "kombu adapter"),
        ("amqp://guest@localhost//", "kombu adapter"),
        ("sqlit:///q.db", "Did you mean 'sqlite'"),
        ("postgres://x", "sqlite:// and memory://"),
        ("sqla+sqlite:///q.db", "sqlite:///FILE"),
        ("q.db", "a URL such as"),
        ("", "a URL such as"),
        ("sqlite://q.db", "three slashes"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///:memory:", "use memory://"),
        ("memory://?mode=0600", "no options"),
        ("sqlite:///q.db?durability", "name=value"),
        ("sqlite:///q.db?mode=0600&mode=0660", "given twice"),
        ("sqlite:///q.db?durabilty=full", "Did you mean 'durability'"),
        ("sqlite:///q.db?durability=maybe", "normal or full, got 'maybe'"),
    ],
)
def test_a_url_that_is_not_accepted_says_what_is(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        opened(url)

    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:s3cret@host:6379/0", "redis://user:***@host:6379/0"),
        ("amqp://:s3cret@host//", "amqp://:***@host//"),
        ("redis://:a@b@host", "redis://:***@host"),
        ("redis://u:s3cret@one;redis://u:s3cret@two", "redis://u:***@one;redis://u:***@two"),
        ("sqs://host?aws_secret_key=s3cret&region=x", "sqs://host?aws_secret_key=***&region=x"),
        ("sqlite:///q.db?mode=0600", "sqlite:///q.db?mode=0600"),
        ("memory://", "memory://"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_an_error_about_a_url_keeps_its_password_to_itself() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_url("redis://user:s3cret@host")

    assert "s3cret" not in str(refused.value)
