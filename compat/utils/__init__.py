"""Small helpers under the names `celery.utils` gives them."""

from __future__ import annotations

from taskmq.compat._missing import missing_names
from taskmq.compat.utils.functional import chunks, noop
from taskmq.compat.utils.imports import instantiate, qualname, symbol_by_name
from taskmq.compat.utils.log import LOG_LEVELS
from taskmq.compat.utils.nodenames import gethostname, nodename, nodesplit
from taskmq.ids import uuid

gen_unique_id = uuid
get_cls_by_name = symbol_by_name
get_full_cls_name = qualname

__all__ = (
    "uuid",
    "gen_unique_id",
    "symbol_by_name",
    "get_cls_by_name",
    "instantiate",
    "qualname",
    "get_full_cls_name",
    "chunks",
    "noop",
    "nodename",
    "nodesplit",
    "gethostname",
    "LOG_LEVELS",
)

__getattr__ = missing_names("utils")
