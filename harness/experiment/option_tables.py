"""Tables as they are written: a class's arguments are its options; names of the environment and secrets."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_type_hints

import pydantic
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    create_model,
)
from pydantic_core import CoreSchema, core_schema

from retrievers.errors import InputError, Problem
from retrievers.options import Strict, as_validation_error, checked
from retrievers.placeholders import REFERENCE

JsonSchema = dict[str, Any]


class _Arguments(Strict):
    """A class's options, described where they are declared: no source is read for them again."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=False)


class Kind(Strict):
    """Something with a kind and the options of that kind, such as an encoder; defaults are filled in."""

    kind: str
    options: dict[str, Any]

    @pydantic.model_serializer
    def written(self) -> dict[str, Any]:
        """The table as an experiment file holds it."""
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True, slots=True)
class KindOf:
    """Annotates a `Kind`: read from a table `{kind = …, option = …}`, whose kind names the class that checks the rest.

    To a reader of the schema it is a union that its `kind` tells apart; here a class is looked up, and imported, when
    its kind is in a file.
    """

    name: str
    """In the schema."""
    find: Callable[[str], type]
    """The class of a kind, or InputError."""
    kinds: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check a table, unless it was checked before."""
        return core_schema.no_info_before_validator_function(
            self._read, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        """All kinds that can be here, those of other packages too."""
        tables = union_of(
            self.name,
            [table_of(self.find(kind), kind) for kind in sorted(self.kinds())],
        )
        return handler(tables.__pydantic_core_schema__)

    def _read(self, table: object) -> object:
        if isinstance(table, Kind):
            return table
        with as_validation_error():
            if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
                raise InputError(
                    Problem(
                        "", "is not a table with a kind", '{ kind = "…", model = "…" }'
                    )
                )
            options = {key: value for key, value in table.items() if key != "kind"}
            model = options_of(self.find(table["kind"]))
            return Kind(
                kind=table["kind"],
                options=checked(model, options, "").model_dump(by_alias=True),
            )


def read_as(shown: Any, text: str = "") -> BeforeValidator:
    """Annotate a value that the schema shows as another; a plain text is the table with that one key."""
    return BeforeValidator(
        lambda value: {text: value} if text and isinstance(value, str) else value,
        json_schema_input_type=shown,
    )


@cache
def options_of(cls: type) -> type[BaseModel]:
    """A model of a class's options: the fields of a `Configured` one, of any other its keyword arguments."""
    return create_model(
        cls.__name__, __base__=_Arguments, __doc__=inspect.getdoc(cls), **_fields(cls)
    )


def _fields(cls: type) -> dict[str, Any]:
    if issubclass(cls, BaseModel):
        return {
            name: (field.annotation, field) for name, field in cls.model_fields.items()
        }
    hints = get_type_hints(cls.__init__)
    return {
        one.name: (
            hints.get(one.name, Any),
            ... if one.default is one.empty else one.default,
        )
        for one in inspect.signature(cls).parameters.values()
    }


def table_of(
    cls: type, kind: str, base: type[BaseModel] | None = None
) -> type[BaseModel]:
    """A class's options as the schema shows them, beside their kind and the keys of every such table."""
    shared = (
        {}
        if base is None
        else {
            key: one
            for key, one in _fields(base).items()
            if key not in ("kind", "options")
        }
    )
    own = {"kind": (Literal[kind], ...), **shared, **_fields(cls)}
    return create_model(
        cls.__name__, __base__=_Arguments, __doc__=inspect.getdoc(cls), **own
    )


def union_of(name: str, tables: Iterable[type[BaseModel]]) -> type[BaseModel]:
    """One model for several tables that their `kind` tells apart."""
    members: Any = Union[tuple(tables)]  # noqa: UP007 - as many as there are
    return create_model(
        name,
        __base__=pydantic.RootModel[Annotated[members, Field(discriminator="kind")]],
    )


LARGEST, LARGEST_SEED = 2**31 - 1, 2**63 - 1
"""Whole numbers of an experiment, at most."""
_NAMES = "api[_-]?key|authorization|secret|password|passwd|token|credential"
SECRET_KEY = re.compile(rf"({_NAMES})s?$", re.IGNORECASE)
SECRET_IN_URL = re.compile(
    rf"://([^/@\s:]*:[^/@\s]+@|\S*[?&]([\w-]*({_NAMES})|key|sig)=[^&#\s{{])",
    re.IGNORECASE,
)
SCHEME = re.compile(r"^(basic|bearer|apikey|token)\b", re.IGNORECASE)
"""What comes before a secret in a header."""


def walk(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a value and all that is in it, each with its place, such as `retrievers[0].name`.

    >>> list(walk({"a": [1]}))
    [('', {'a': [1]}), ('a', [1]), ('a[0]', 1)]
    """
    yield where, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from walk(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from walk(inner, f"{where}[{number}]")


def strings(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in nested tables, with its place."""
    return ((place, one) for place, one in walk(value, where) if isinstance(one, str))


def too_large(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the whole numbers that the libraries behind cannot hold; a seed may be longer."""
    for place, value in walk(written):
        if isinstance(value, int) and abs(value) > (
            LARGEST_SEED if place == "seed" else LARGEST
        ):
            yield Problem(place, "is too large a number", f"at most {LARGEST:,}")


def secrets(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys and passwords that are in the file itself."""
    for place, value in strings(written):
        plain = SCHEME.sub("", REFERENCE.sub("", value).strip()).strip()
        if (
            SECRET_KEY.search(place.rpartition(".")[2]) and plain
        ) or SECRET_IN_URL.search(plain):
            yield Problem(
                place,
                "a secret does not belong in a file",
                'put it in the environment, write "${NAME}"',
            )


def unset(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield each `${NAME}` that the environment lacks."""
    for place, value in strings(written):
        for reference in REFERENCE.finditer(value):
            if reference[1] not in os.environ:
                yield Problem(
                    place,
                    f"${{{reference[1]}}} is not set in the environment",
                    f"export {reference[1]}=…",
                )
