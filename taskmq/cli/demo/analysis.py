"""The demo's real work: what one source file holds. Pure functions of its bytes.

The result of a file is the same on every run, so that two rounds can be compared and a lost or doubled
task would show.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Tokens that are layout, not code.
_LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.BoolOp,
    ast.comprehension,
    ast.Assert,
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# A sketch holds so many minima; the share two sketches agree on estimates how alike two files are.
SKETCH = 32
# Tokens of one shingle.
SHINGLE = 5
_MASK = (1 << 61) - 1
# Multipliers and offsets of the sketch's hash functions; odd numbers derived from their index.
_HASHES = tuple(
    (
        int.from_bytes(hashlib.blake2b(b"a%d" % i, digest_size=7).digest(), "big") | 1,
        int.from_bytes(hashlib.blake2b(b"b%d" % i, digest_size=7).digest(), "big"),
    )
    for i in range(SKETCH)
)


def analyse(source: bytes) -> dict[str, Any]:
    """Size, hash, tokens, definitions, the most branched function and a likeness sketch of a file.

    A file that is no Python of this version has `error` set and zeros for what needs parsing.
    """
    facts: dict[str, Any] = {
        "bytes": len(source),
        "lines": source.count(b"\n"),
        "sha256": hashlib.sha256(source).hexdigest(),
        "code_lines": 0,
        "tokens": 0,
        "functions": 0,
        "classes": 0,
        "branches": 0,
        "worst": ["", 0],
        "sketch": [],
        "error": None,
    }
    try:
        words, code_lines = _tokens(source)
        tree = _tree(source)
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        facts["error"] = f"{type(error).__name__}: {error}"
        return facts
    functions = list(_functions(tree))
    worst = max(functions, key=lambda f: f[1], default=("", 0))
    facts |= {
        "code_lines": code_lines,
        "tokens": len(words),
        "functions": len(functions),
        "classes": sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree)),
        "branches": sum(isinstance(node, _BRANCHES) for node in ast.walk(tree)),
        "worst": list(worst),
        "sketch": sketch(words),
    }
    return facts


def _tokens(source: bytes) -> tuple[list[str], int]:
    words: list[str] = []
    rows: set[int] = set()
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type not in _LAYOUT:
            words.append(token.string)
            rows.update(range(token.start[0], token.end[0] + 1))
    return words, len(rows)


def _tree(source: bytes) -> ast.AST:
    with warnings.catch_warnings():
        # Old sources hold escapes that newer versions warn of.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Every function with its branches plus one, inner functions counted for themselves too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FUNCTIONS):
            branches = sum(isinstance(inner, _BRANCHES) for inner in ast.walk(node))
            yield prefix + node.name, branches + 1
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield from _functions(node, prefix)


def sketch(words: Sequence[str]) -> list[int]:
    """A MinHash over runs of tokens, each minimum cut to 32 bits; empty for a file of few tokens."""
    shingles = {
        int.from_bytes(
            hashlib.blake2b("\0".join(words[i : i + SHINGLE]).encode(), digest_size=7).digest(),
            "big",
        )
        for i in range(len(words) - SHINGLE + 1)
    }
    if not shingles:
        return []
    return [min((a * s + b) & _MASK for s in shingles) & 0xFFFFFFFF for a, b in _HASHES]


def likeness(one: Sequence[int], other: Sequence[int]) -> float:
    """The estimated share of shingles two files have in common, 0 to 1."""
    if not one or not other:
        return 0.0
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def most_alike(sketches: Iterable[tuple[str, Sequence[int]]]) -> tuple[str, str, float]:
    """The two files that are most alike, by name; `("", "", 0.0)` when no two have anything in common."""
    files = sorted(sketches)
    best = ("", "", 0.0)
    for i, (name, own) in enumerate(files):
        for other_name, other in files[i + 1 :]:
            share = likeness(own, other)
            if share > best[2]:
                best = (name, other_name, share)
    return best


def find_word(source: bytes, word: str) -> dict[str, Any]:
    """An urgent request: the lines that hold a word."""
    needle = word.encode()
    hits = [n for n, line in enumerate(source.split(b"\n"), 1) if needle in line]
    return {"word": word, "hits": len(hits), "first": hits[0] if hits else None}


def count_lines(source: bytes) -> dict[str, Any]:
    """A request: lines in all, lines of code, and comments."""
    try:
        words, code_lines = _tokens(source)
    except (SyntaxError, tokenize.TokenError):
        words, code_lines = [], 0
    comments = sum(line.lstrip().startswith(b"#") for line in source.split(b"\n"))
    lines = source.count(b"\n")
    return {"lines": lines, "code_lines": code_lines, "comments": comments, "tokens": len(words)}


def outline(source: bytes) -> dict[str, Any]:
    """A request: the names of the functions and methods a file defines, with their branches."""
    try:
        functions = list(_functions(_tree(source)))
    except (SyntaxError, ValueError):
        functions = []
    return {"functions": [list(function) for function in functions]}
