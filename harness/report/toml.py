"""An experiment as a TOML file again: the manifest keeps what was written as tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any]) -> str:
    r"""Write tables that `tomllib` reads back equal; what is no table or list of tables comes first.

    >>> dumps({"name": "x", "latency": {"sample": 5}})
    'name = "x"\n\n[latency]\nsample = 5\n'
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _is_block(value)]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *_body(value)]
        elif _is_block(value):
            for inner in value:
                lines += ["", f"[[{_key(key)}]]", *_body(inner)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(inner, Mapping) for inner in value)
    )


def _body(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return "{ " + inner + " }" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # inf and nan are TOML too
    # JSON's strings, numbers and booleans are TOML's; only DEL must be escaped as well.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
