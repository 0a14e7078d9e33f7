"""Checking tables of options: unknown keys get "did you mean", and a class's arguments are its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from retrievers.errors import InputError, Problem, did_you_mean

OptionsType = TypeVar("OptionsType", bound=BaseModel)


class Strict(BaseModel):
    """A table whose keys are all known, whose values are of the right type and never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class _Arguments(Strict):
    """A class's arguments, which its constructor's docstring describes: no source is read for others."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class Kind(Strict):
    """Something with a kind and the options of that kind, such as an encoder; defaults are filled in."""

    kind: str
    options: dict[str, Any]

    def written(self) -> dict[str, Any]:
        """The table as it would stand in an experiment file."""
        return {"kind": self.kind, **self.options}


def kind_of(table: object, find: Callable[[str], type], where: str) -> Kind:
    """Check a table `{kind = …, option = …}` against the class that its kind names.

    Args:
        table: what stands in the experiment file.
        find: gives the class of a kind, or raises InputError.
        where: the key of the table, for complaints.
    """
    if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
        raise InputError(Problem(where, "is no table with a kind", '{ kind = "…", model = "…" }'))
    options = {key: value for key, value in table.items() if key != "kind"}
    try:
        model = options_of(find(table["kind"]))
    except InputError as error:
        raise InputError([Problem(f"{where}.{p.where}", p.what, p.remedy) for p in error.problems]) from None
    return Kind(kind=table["kind"], options=checked(model, options, where).model_dump())


@cache
def options_of(cls: type) -> type[BaseModel]:
    """A model of a class's keyword arguments, each with its type and default."""
    constructor: Any = cls.__init__  # type: ignore[misc]
    hints = get_type_hints(constructor)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]:
        if parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (hints.get(name, Any), default)
    return create_model(cls.__name__, __base__=_Arguments, **fields)


def checked(model: type[OptionsType], table: Mapping[str, Any], where: str) -> OptionsType:
    """Validate a table, lists taken as tuples; every complaint becomes a Problem with its key."""
    try:
        return model.model_validate(_frozen(table))
    except ValidationError as error:
        raise InputError(list(_problems(error, model, where))) from None


def _problems(error: ValidationError, model: type[BaseModel], where: str) -> Iterator[Problem]:
    for fault in error.errors():
        place = where
        for part in fault["loc"]:
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
        if fault["type"] == "extra_forbidden":
            *outer, key = fault["loc"]
            yield Problem(place, f"unknown key {key!r}", did_you_mean(str(key), _keys(model, outer)))
        elif fault["type"] == "missing":
            yield Problem(place, "is missing")
        elif fault["type"] == "too_short":
            yield Problem(place, f"needs at least {fault['ctx']['min_length']}")
        elif isinstance(fault.get("ctx", {}).get("error"), ValueError):
            yield Problem(place, str(fault["ctx"]["error"]))
        else:
            value = fault["input"]
            shown = repr(list(value) if isinstance(value, tuple) else value)  # TOML has lists
            yield Problem(place, f"{shown if len(shown) < 60 else shown[:57] + '…'}: {_plain(fault['msg'])}")


def _keys(model: type[BaseModel], path: list[int | str]) -> list[str]:
    """The keys that a table inside a model may have."""
    for part in path:
        annotation = model.model_fields[str(part)].annotation
        inner = [annotation, *get_args(annotation)]
        model = next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
    return list(model.model_fields)


def _plain(message: str) -> str:
    if "should match pattern" in message:
        return "a name has letters, digits, '.', '_' and '-', begins with a letter or digit, and is at most 64 long"
    if "should be a valid dictionary" in message:
        return "should be a table"
    return message.replace("Input should be", "should be").replace("valid tuple", "list")


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
