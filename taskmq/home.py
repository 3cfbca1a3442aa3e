"""Which directory a project is at home in, so that relative database paths mean one file everywhere.

A web process and a worker are started in different directories; the module that makes the `App` is the
same in both (DESIGN §6.1).
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

_INSTALLED = ("site-packages", "dist-packages")


def project_dir(module: Mapping[str, Any]) -> Path | None:
    """The directory that holds the top-level package or module of the module with these globals.

    None where there is none to speak of: an interactive session, an installed package, the standard
    library.
    """
    file = module.get("__file__")
    if not isinstance(file, str):
        return None
    path = Path(file).resolve()
    home = path.parent
    name = module.get("__name__") or "__main__"
    if name == "__main__":
        # Started as a script, perhaps one inside a package: the package's own home counts.
        while (home / "__init__.py").is_file() and home.parent != home:
            home = home.parent
    else:
        levels = name.count(".") + (path.stem == "__init__")
        for _ in range(levels):
            home = home.parent
    if any(part in _INSTALLED for part in home.parts):
        return None
    stdlib = Path(sysconfig.get_paths()["stdlib"]).resolve()
    return None if home == stdlib or stdlib in home.parents else home


def main_module_name() -> str:
    """The name under which the module that runs as `__main__` is imported elsewhere.

    `python -m proj.tasks` and `python proj/tasks.py` both give "proj.tasks", as `-A proj.tasks` does, so that
    a worker knows the tasks a script submits. Without a file it stays "__main__".
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    if not isinstance(file, str):
        return "__main__"
    path = Path(file).resolve()
    home = project_dir(vars(main)) or path.parent
    parts = path.relative_to(home).with_suffix("").parts
    return ".".join(parts) or "__main__"


def calling_module(package: str = "taskmq") -> Mapping[str, Any]:
    """The globals of the innermost caller that is not inside `package`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != package and not name.startswith(package + "."):
            return frame.f_globals
        frame = frame.f_back
    return {}
