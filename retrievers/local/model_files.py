"""The files of a local model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from retrievers.embedded import Role
from retrievers.errors import InputError, Problem
from retrievers.services.service_errors import UNREADABLE_ERRORS

DAMAGED_FILE_REMEDY = "download the model again, or save it again"


class FirstModule(NamedTuple):
    """The module of a model that reads texts; later ones read its vectors."""

    folder: Path
    """The folder with its tokenizer and settings."""
    type_name: str
    """Its class with its package: "….modules.Transformer"; empty if the model
    has no modules.json."""


def read_first_module(folder: Path, role: Role) -> FirstModule:
    """Return the module that reads a role's texts: the first, or a router's choice.

    A router has modules of its own for each role, its routes. A role without a route
    takes the default one, else the first.
    """
    modules = read_json_file(folder / "modules.json", list) or [{"path": ""}]
    module_folder = folder / modules[0].get("path", "")
    type_name = str(modules[0].get("type", ""))
    routes = read_json_file(module_folder / "router_config.json")
    if not type_name.endswith(".Router") or not routes:
        return FirstModule(module_folder, type_name)
    structure = routes["structure"]
    route = structure.get(role)
    if not route:
        default_role = routes["parameters"].get("default_route")
        route = structure[default_role or next(iter(structure))]
    first_name = route[0]
    return FirstModule(module_folder / first_name, routes["types"][first_name])


def read_model_settings(folder: Path | None) -> Any:
    """Return the settings that sentence-transformers has saved with a model.

    Empty if there are none, or the files are not on this machine (`folder` is None).

    Raises:
        InputError: the file is damaged.
    """
    if folder is None:
        return {}
    return read_json_file(folder / "config_sentence_transformers.json")


def read_json_file(file: Path, content_type: type = dict) -> Any:
    """Return the content of a file: a table, or a list; empty if there is no file.

    Raises:
        InputError: it cannot be read, or is of another type.
    """
    if not file.is_file():
        return content_type()
    reason = "it has no JSON object"
    if content_type is list:
        reason = "it has no JSON array"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, content_type):
            return content
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    raise damaged_file(file, reason, option="model", remedy=DAMAGED_FILE_REMEDY)


@contextmanager
def explain_damage(folder: Path | None) -> Iterator[None]:
    """Read settings of a model inside.

    Raises:
        InputError: they are of other types than sentence-transformers writes.
    """
    try:
        yield
    except UNREADABLE_ERRORS as error:
        cause = f"{type(error).__name__}: {error}"
        reason = f"its settings are of another form ({cause})"
        raise damaged_file(
            folder or Path(), reason, option="model", remedy=DAMAGED_FILE_REMEDY
        ) from None


def damaged_file(file: Path, reason: str, *, option: str, remedy: str) -> InputError:
    """Return the error of a file of a model that cannot be read, and why."""
    first_line = " ".join(reason.splitlines()[:1])
    return InputError(
        Problem(option, f"{str(file)!r} cannot be read: {first_line}", remedy)
    )
