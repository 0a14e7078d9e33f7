"""The options of a class as a model."""

import inspect
from collections.abc import Callable, Iterable, Mapping
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
from retrievers.options.tables import StrictTable, as_validation_error, validated

JsonSchema = dict[str, Any]


class _Arguments(StrictTable):
    """A class's options, described where they are declared: no source is read for them again."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=False)


class PartConfig(StrictTable):
    """Something with a kind and the options of that kind, such as an encoder; defaults are filled in."""

    kind: str
    options: dict[str, Any]

    @pydantic.model_serializer
    def as_table(self) -> dict[str, Any]:
        """The table as an experiment file holds it."""
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True, slots=True)
class PartField:
    """Annotates a `Kind`: read from a table `{kind = …, option = …}`, whose kind names the class that checks the rest.

    To a reader of the schema it is a union that its `kind` tells apart; here a class is looked up, and imported, when
    its kind is in a file.
    """

    name: str
    """In the schema."""
    find_class: Callable[[str], type]
    """The class of a kind, or InputError."""
    list_kinds: Callable[[], Iterable[str]]

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
        tables = kind_union(
            self.name,
            [
                kind_table(self.find_class(kind), kind)
                for kind in sorted(self.list_kinds())
            ],
        )
        return handler(tables.__pydantic_core_schema__)

    def _read(self, table: object) -> object:
        if isinstance(table, PartConfig):
            return table
        with as_validation_error():
            if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
                raise InputError(
                    Problem(
                        "", "is not a table with a kind", '{ kind = "…", model = "…" }'
                    )
                )
            options = {key: value for key, value in table.items() if key != "kind"}
            model = options_model(self.find_class(table["kind"]))
            return PartConfig(
                kind=table["kind"],
                options=validated(model, options, "").model_dump(by_alias=True),
            )


def shown_as(shown: Any, text: str = "") -> BeforeValidator:
    """Annotate a value that the schema shows as another; a plain text is the table with that one key."""
    return BeforeValidator(
        lambda value: {text: value} if text and isinstance(value, str) else value,
        json_schema_input_type=shown,
    )


@cache
def options_model(cls: type) -> type[BaseModel]:
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


def kind_table(
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


def kind_union(name: str, tables: Iterable[type[BaseModel]]) -> type[BaseModel]:
    """One model for several tables that their `kind` tells apart."""
    members: Any = Union[tuple(tables)]  # noqa: UP007 - as many as there are
    return create_model(
        name,
        __base__=pydantic.RootModel[Annotated[members, Field(discriminator="kind")]],
    )
