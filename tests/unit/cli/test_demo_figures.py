"""The demo's pure parts: what a file holds, percentiles, the plot."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmq.cli.demo.analysis import (
    analyse,
    count_lines,
    find_word,
    likeness,
    most_alike,
    outline,
    sketch,
)
from taskmq.cli.demo.corpus import files
from taskmq.cli.demo.figures import Waits, percentile, summary, waits_by_priority
from taskmq.cli.demo.plot import ASCII, Row, plot
from taskmq.cli.demo.report import verdict, wait_table
from taskmq.errors import ConfigError

SOURCE = b'''\
"""Doc."""
# a comment

class A:
    def simple(self):
        return 1

    def branchy(self, x):
        if x and x > 1 or x:
            return [y for y in x]
        return 2
'''


def test_a_file_is_counted_by_its_tokens_and_its_tree() -> None:
    facts = analyse(SOURCE)

    assert (facts["lines"], facts["code_lines"]) == (11, 8)
    assert (facts["functions"], facts["classes"]) == (2, 1)
    # if, and, or, the comprehension, and one for the function itself.
    assert facts["worst"] == ["A.branchy", 5]
    assert facts["error"] is None


def test_a_file_is_the_same_on_every_run() -> None:
    assert analyse(SOURCE) == analyse(SOURCE)


def test_a_file_that_is_no_python_says_so_and_keeps_its_hash() -> None:
    facts = analyse(b"def broken(:\n")

    assert facts["error"] is not None
    assert (facts["tokens"], len(facts["sha256"])) == (0, 64)


def test_likeness_is_1_for_equal_files_and_0_for_strangers() -> None:
    one = sketch([f"a{n}" for n in range(200)])
    other = sketch([f"b{n}" for n in range(200)])
    near = sketch([f"a{n}" for n in range(190)] + [f"c{n}" for n in range(10)])

    assert likeness(one, one) == 1.0
    assert likeness(one, other) == 0.0
    assert 0.6 < likeness(one, near) < 1.0
    assert most_alike([("x", one), ("y", other), ("z", near)])[:2] == ("x", "z")


def test_requests_answer_about_one_file() -> None:
    assert find_word(SOURCE, "return") == {"word": "return", "hits": 3, "first": 6}
    assert find_word(SOURCE, "nothing")["first"] is None
    assert count_lines(SOURCE) == {"lines": 11, "code_lines": 8, "comments": 1, "tokens": 39}
    assert count_lines(b"def broken(:")["lines"] == 0
    assert outline(SOURCE) == {"functions": [["A.simple", 1], ["A.branchy", 5]]}
    assert outline(b"def broken(:") == {"functions": []}


def test_files_are_spread_evenly_and_leave_out_tests(tmp_path: Path) -> None:
    for folder in ("a", "test", "z"):
        (tmp_path / folder).mkdir()
        for number in range(4):
            (tmp_path / folder / f"m{number}.py").write_text("x = 1\n" * 200)
    (tmp_path / "a" / "tiny.py").write_text("")

    assert files(100, tmp_path) == [f"{d}/m{n}.py" for d in "az" for n in range(4)]
    assert files(4, tmp_path) == ["a/m0.py", "a/m2.py", "z/m0.py", "z/m2.py"]


def test_no_sources_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        files(10, tmp_path)


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.95, 10), (0.01, 1), (1.0, 10)])
def test_percentiles_are_values_that_were_measured(share: float, value: int) -> None:
    assert percentile(list(range(1, 11)), share) == value


def test_waits_come_from_the_most_urgent_down() -> None:
    rows = waits_by_priority([(-5, 2.0), (9, 0.1), (9, 0.3), (9, 0.2)])

    assert rows == [Waits(9, 3, 0.1, 0.2, 0.3, 0.3), Waits(-5, 1, 2.0, 2.0, 2.0, 2.0)]


def test_the_summary_does_not_depend_on_the_order_of_completion() -> None:
    facts = {name: analyse(SOURCE + name.encode()) for name in ("b.py", "a.py", "c.py")}

    backwards = {name: facts[name] for name in sorted(facts, reverse=True)}

    assert summary(facts) == summary(backwards)
    assert summary(facts)["files"] == 3


def test_a_missing_file_shows_in_the_summary() -> None:
    facts = {name: analyse(SOURCE) for name in ("a.py", "b.py")}

    assert summary(facts)["sha256"] != summary({"a.py": facts["a.py"]})["sha256"]


def test_the_plot_puts_decades_at_equal_distance() -> None:
    rows = [Row("on", Waits(9, 3, 0.01, 0.01, 0.01, 0.01), "on")]
    rows += [Row("off", Waits(9, 3, 1.0, 1.0, 1.0, 1.0), "off")]

    lines = plot(rows, columns=41, glyphs=ASCII)

    start = len("off  ")
    assert lines[0] == ("on", "on   " + "O")
    assert lines[1][1].index("O") == start + 40
    assert lines[2] == ("axis", " " * start + "+" + "-" * 19 + "+" + "-" * 19 + "+")
    assert lines[3][1].split() == ["10ms", "100ms", "1s"]


def test_a_bar_goes_from_the_least_to_p95_and_is_dotted_up_to_the_longest() -> None:
    (line, *_) = plot([Row("x", Waits(0, 9, 0.01, 0.1, 1.0, 10.0), "x")], columns=31, glyphs=ASCII)

    assert line[1] == "x  " + "=" * 10 + "O" + "=" * 10 + "." * 10


def test_the_table_has_both_rounds_side_by_side() -> None:
    on = [Waits(9, 30, 0.001, 0.012, 0.05, 0.06), Waits(-5, 400, 0.1, 2, 4, 4.2)]
    off = [Waits(9, 30, 0.1, 0.24, 0.5, 0.6), Waits(-5, 400, 0.1, 2, 4, 4.1)]

    lines = wait_table({"on": on, "off": off})

    assert lines[2].split() == [
        "P9",
        "urgent",
        "30",
        "12ms",
        "50ms",
        "60ms",
        "240ms",
        "500ms",
        "600ms",
    ]
    assert verdict({"on": on, "off": off}) == [
        "Half of the 30 urgent requests began within 12ms, without yielding within 240ms.",
        "That is 20 times sooner.",
    ]
    assert len(verdict({"on": on, "off": on})) == 1
