"""A module imports only from its own floor or from floors below it, and never in a circle.

The floors are those of docs/architecture.md; a module that stands on no floor fails the test, so that a
new one has to be placed.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Longest prefix wins. `taskmq` itself and `taskmq.__main__` are doors, not rooms: they only lead to names.
FLOORS: dict[str, int] = {
    "taskmq._version": 0,
    "taskmq.errors": 0,
    "taskmq.failpoints": 0,
    "taskmq.states": 0,
    "taskmq.priority": 0,
    "taskmq.clock": 0,
    "taskmq.ids": 0,
    "taskmq.bell": 0,
    "taskmq.interrupts": 0,
    "taskmq.printable": 0,
    "taskmq.logformat": 0,
    "taskmq.message": 1,
    "taskmq.config": 1,
    "taskmq.codec": 1,
    "taskmq.wire": 1,
    "taskmq.retry": 1,
    "taskmq.cronfields": 1,
    "taskmq.schedules": 1,
    "taskmq.policy": 2,
    "taskmq.transports": 3,
    "taskmq.results": 3,
    "taskmq.coordination": 3,
    "taskmq.hooks": 3,
    "taskmq.transports.memory": 4,
    "taskmq.transports.sqlite": 4,
    "taskmq.transports.urls": 4,
    "taskmq.options": 5,
    "taskmq.times": 5,
    "taskmq.shape": 5,
    "taskmq.signature": 5,
    "taskmq.submitting": 5,
    "taskmq.home": 5,
    "taskmq.stores": 5,
    "taskmq.waiting": 5,
    "taskmq.task": 5,
    "taskmq.declaring": 5,
    "taskmq.registry": 5,
    "taskmq.app": 5,
    "taskmq.context": 5,
    "taskmq.result": 5,
    "taskmq.workflow": 5,
    "taskmq.loading": 5,
    "taskmq.pools": 6,
    "taskmq.worker": 6,
    "taskmq.events": 6,
    "taskmq.maintenance": 6,
    "taskmq.cli": 7,
    "taskmq.testing": 7,
    "taskmq.aio": 7,
    "taskmq.compat": 8,
}
DOORS = {"taskmq", "taskmq.__main__"}


def modules() -> dict[str, Path]:
    """Module name to file, for both source folders (rglob does not follow the symlink)."""
    found = {}
    for folder, package in ((ROOT / "taskmq", "taskmq"), (ROOT / "compat", "taskmq.compat")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts and parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join((package, *parts))] = path
    return found


def floor(module: str) -> int | None:
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in FLOORS:
            return FLOORS[prefix]
    return None


def imports(path: Path, known: set[str]) -> set[tuple[str, int, bool]]:
    """(module, line, runs at import) of every taskmq module a file imports, typing-only ones left out."""
    tree = ast.parse(path.read_text())
    found: set[tuple[str, int, bool]] = set()

    def visit(node: ast.AST, at_import: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.orelse:
                visit(statement, at_import)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    found.add((alias.name, node.lineno, at_import))
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                target = deeper if deeper in known else node.module
                if target in known:
                    found.add((target, node.lineno, at_import))
        inner = at_import and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(tree, True)
    return found


MODULES = modules()


def test_every_module_stands_on_a_floor() -> None:
    homeless = sorted(m for m in MODULES if m not in DOORS and floor(m) is None)
    assert not homeless, f"not placed in FLOORS (see docs/architecture.md): {homeless}"


def test_no_import_goes_up() -> None:
    upward = []
    for module, path in sorted(MODULES.items()):
        own = floor(module)
        if module in DOORS or own is None:
            continue
        for target, line, _ in imports(path, set(MODULES)):
            theirs = floor(target)
            if target not in DOORS and theirs is not None and theirs > own:
                upward.append(f"{module}:{line} (F{own}) imports {target} (F{theirs})")
    assert not upward, "\n".join(upward)


def test_adapters_do_not_import_each_other() -> None:
    crossing = []
    for module, path in MODULES.items():
        for target, line, _ in imports(path, set(MODULES)):
            mine = module.split(".")[:3]
            theirs = target.split(".")[:3]
            adapters = (["taskmq", "transports", "memory"], ["taskmq", "transports", "sqlite"])
            if mine in adapters and theirs in adapters and mine != theirs:
                crossing.append(f"{module}:{line} imports {target}")
    assert not crossing, "\n".join(crossing)


def test_no_import_cycles() -> None:
    graph = {
        module: {
            t for t, _, at_import in imports(path, set(MODULES)) if at_import and t not in DOORS
        }
        for module, path in MODULES.items()
        if module not in DOORS
    }
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        if module in trail:
            circle = " -> ".join((*trail[trail.index(module) :], module))
            pytest.fail(f"import cycle: {circle}")
        if module in done:
            return
        for target in graph.get(module, ()):
            if target != module:
                walk(target, (*trail, module))
        done.add(module)

    for module in sorted(graph):
        walk(module, ())


def test_celery_is_never_imported_by_the_product() -> None:
    guilty = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            guilty += [module for n in names if n.split(".")[0] == "celery"]
    assert not guilty, guilty


def test_no_file_is_too_long() -> None:
    # 400 asks whether two ideas live there; 600 is the end.
    long = {
        str(path.relative_to(ROOT)): count
        for path in MODULES.values()
        if (count := len(path.read_text().splitlines())) > 600
    }
    assert not long, long
