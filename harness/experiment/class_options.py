"""The options of a class as a model.

A table of an experiment names a class; the pydantic model that checks it has the
keyword arguments of that class, or its fields. The schema shows the same models,
of every kind; a run imports the classes of its own kinds alone.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_type_hints

import pydantic
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    create_model,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from retrievers.errors import InputError, Problem
from retrievers.options.tables import StrictTable, as_validation_error, validated

KIND_KEYS = ("kind", "options")
"""Keys of a table that every kind has in its own form."""


class _Arguments(StrictTable):
    """The options of a class, with their own descriptions."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=False)


class PartConfig(StrictTable):
    """A kind with its options, such as an encoder; defaults are filled in."""

    kind: str
    options: dict[str, Any]

    @pydantic.model_serializer
    def as_table(self) -> dict[str, Any]:
        """Return the table as an experiment file has it."""
        return {"kind": self.kind, **self.options}


class _Option(NamedTuple):
    """One option of a class, as pydantic defines a field."""

    key: str
    annotation: Any
    default: Any
    """A value, a description of the field, or `...` if the option is required."""


@dataclass(frozen=True, slots=True)
class PartField:
    """Annotates a `PartConfig`, which is read from `{kind = …, option = …}`.

    The kind names the class that checks the options. In the schema it is a union of all
    kinds; in a file only the class of its kind is imported.
    """

    name: str
    """The name of the union in the schema."""
    find_class: Callable[[str], type]
    """Returns the class of a kind, or raises InputError."""
    list_kinds: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check a table, unless it is a PartConfig."""
        return core_schema.no_info_before_validator_function(
            self._read, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of all kinds, those of other packages too."""
        kinds = sorted(self.list_kinds())
        tables = [kind_table(self.find_class(kind), kind) for kind in kinds]
        return handler(kind_union(self.name, tables).__pydantic_core_schema__)

    def _read(self, table: object) -> object:
        if isinstance(table, PartConfig):
            return table
        with as_validation_error():
            kind = table.get("kind") if isinstance(table, Mapping) else None
            if not isinstance(table, Mapping) or not isinstance(kind, str):
                problem = "is not a table with a kind"
                raise InputError(Problem("", problem, '{ kind = "…", model = "…" }'))
            options = {key: option for key, option in table.items() if key != "kind"}
            model = options_model(self.find_class(kind))
            checked_options = validated(model, options, "").model_dump(by_alias=True)
            return PartConfig(kind=kind, options=checked_options)


def shown_as(schema_type: Any, text_key: str = "") -> BeforeValidator:
    """Annotate a value that has another type in the schema.

    Args:
        schema_type: its type in the schema.
        text_key: if given, a plain text is read as a table with this one key.
    """

    def read_text(value: Any) -> Any:
        return {text_key: value} if text_key and isinstance(value, str) else value

    return BeforeValidator(read_text, json_schema_input_type=schema_type)


@cache
def options_model(cls: type) -> type[BaseModel]:
    """Return a model of the options of a class.

    These are its fields if it is a pydantic model, else its keyword arguments.
    """
    return _create_model(cls, _options_of(cls))


def kind_table(
    cls: type, kind: str, base: type[BaseModel] | None = None
) -> type[BaseModel]:
    """Return a model of a kind's table, as the schema shows it.

    Args:
        cls: the class of the kind.
        kind: its name.
        base: has the keys of all such tables.
    """
    options = [_Option("kind", Literal[kind], ...)]
    if base is not None:
        shared = _options_of(base)
        options += [option for option in shared if option.key not in KIND_KEYS]
    return _create_model(cls, [*options, *_options_of(cls)])


def _create_model(cls: type, options: Sequence[_Option]) -> type[BaseModel]:
    """Return a model with a field for each option; of two with one key, the last."""
    model_fields: Any = {
        option.key: (option.annotation, option.default) for option in options
    }
    doc = inspect.getdoc(cls)
    return create_model(cls.__name__, __base__=_Arguments, __doc__=doc, **model_fields)


def _options_of(cls: type) -> list[_Option]:
    """Return the options of a class: its fields, else its keyword arguments."""
    if issubclass(cls, BaseModel):
        return [
            _Option(key, field.annotation, field)
            for key, field in cls.model_fields.items()
        ]
    types = get_type_hints(cls.__init__)
    options: list[_Option] = []
    for key, parameter in inspect.signature(cls).parameters.items():
        is_required = parameter.default is parameter.empty
        default = ... if is_required else parameter.default
        options.append(_Option(key, types.get(key, Any), default))
    return options


def kind_union(name: str, tables: Iterable[type[BaseModel]]) -> type[BaseModel]:
    """Return one model for several tables, which differ in their `kind`."""
    members: Any = Union[tuple(tables)]  # noqa: UP007 - as many as there are
    union = Annotated[members, Field(discriminator="kind")]
    return create_model(name, __base__=pydantic.RootModel[union])
