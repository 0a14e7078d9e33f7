"""Tables of options: a class's arguments are its options, and every complaint names its key."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    RootModel,
    create_model,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

from retrievers.errors import InputError, Problem
from retrievers.options import KEEPS_OBJECT, Configured, Strict, as_validation_error, checked

JsonSchema = dict[str, Any]
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _Arguments(Strict):
    """A class's arguments, which its constructor's docstring describes: no source is read for others."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class Kind(Strict):
    """Something with a kind and the options of that kind, such as an encoder; defaults are filled in."""

    kind: str
    options: dict[str, Any]

    @model_serializer
    def written(self) -> dict[str, Any]:
        """The table as it would stand in an experiment file."""
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True, slots=True)
class KindOf:
    """Annotates a `Kind`: read from a table `{kind = …, option = …}`, whose kind names the class that checks the rest.

    To a reader of the schema it is a union that its `kind` tells apart; here a class is looked up, and imported, when
    its kind stands in a file.
    """

    name: str
    """In the schema."""
    find: Callable[[str], type]
    """The class of a kind, or InputError."""
    kinds: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check a table, unless it was checked before."""
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        """All kinds that can stand here, those of other packages too."""
        return handler(self.union().__pydantic_core_schema__)

    def union(self) -> type[BaseModel]:
        """The tables of all kinds as one model, for the schema."""
        return union_of(self.name, [table_of(self.find(kind), kind) for kind in sorted(self.kinds())])

    def _read(self, table: object) -> object:
        if isinstance(table, Kind):
            return table
        with as_validation_error():
            if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
                raise InputError(Problem("", "is not a table with a kind", '{ kind = "…", model = "…" }'))
            options = {key: value for key, value in table.items() if key != "kind"}
            model = options_of(self.find(table["kind"]))
            return Kind(kind=table["kind"], options=checked(model, options, "").model_dump())


@dataclass(frozen=True, slots=True)
class TableOf:
    """Annotates a value that is written as a table of a class's arguments, or as a text that stands for one of them."""

    cls: type
    text: str = ""
    """The key that a text stands for; none where only a table may be written."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read a text as the table that it stands for."""
        return core_schema.no_info_before_validator_function(
            lambda value: {self.text: value} if self.text and isinstance(value, str) else value, handler(source)
        )

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        """The table, or either of the two."""
        table = self.cls if issubclass(self.cls, BaseModel) else table_of(self.cls)
        shown = handler(table.__pydantic_core_schema__)
        return {"anyOf": [{"type": "string"}, shown]} if self.text else shown


@cache
def options_of(cls: type) -> type[BaseModel]:
    """A model of a class's keyword arguments, each with its type, its default and its description."""
    if issubclass(cls, Configured):
        own: Any = {name: (field.annotation, field) for name, field in cls.model_fields.items()}
        return create_model(cls.__name__, __base__=_Arguments, __doc__=inspect.getdoc(cls), **own)
    fields: dict[str, Any] = {}
    for constructor in _constructors(cls):
        hints, docs, base = get_type_hints(constructor), argument_docs(constructor), bool(fields)
        for name, parameter in list(inspect.signature(constructor).parameters.items())[1:]:
            settled = name in fields or (base and parameter.kind is not inspect.Parameter.KEYWORD_ONLY)
            if not settled and parameter.kind not in _REST:
                default = ... if parameter.default is inspect.Parameter.empty else parameter.default
                hint = Annotated[str, KEEPS_OBJECT] if hints.get(name) is str else hints.get(name, Any)
                fields[name] = (hint, Field(default, description=docs.get(name)))
    return create_model(cls.__name__, __base__=_Arguments, __doc__=inspect.getdoc(cls), **fields)


def _constructors(cls: type) -> Iterator[Any]:
    """The constructor of a class, and those to which each hands on what it does not name itself, by `**`."""
    for base in cls.__mro__:
        constructor = vars(base).get("__init__")
        if base is object or constructor is None or getattr(base, "_is_protocol", False):
            continue
        yield constructor
        kinds = [one.kind for one in inspect.signature(constructor).parameters.values()]
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return


def table_of(cls: type, kind: str = "", base: type[BaseModel] | None = None) -> type[BaseModel]:
    """A class's options as the schema shows them, described by its docstrings.

    Args:
        cls: whose keyword arguments are the options.
        kind: its name, where the table has a key `kind`.
        base: a table whose keys stand in every such table.
    """
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)} if kind else {}
    docs = attribute_docs(cls) if is_dataclass(cls) else {}
    for model in filter(None, (base, options_of(cls))):
        for key, field in model.model_fields.items():
            if key not in ("kind", "options"):
                field.description = field.description or docs.get(key)
                fields[key] = (field.annotation, field)
    return create_model(cls.__name__, __base__=_Arguments, __doc__=inspect.getdoc(cls), **fields)


def union_of(name: str, tables: Iterable[type[BaseModel]]) -> type[BaseModel]:
    """One model for several tables that their `kind` tells apart."""
    members: Any = Union[tuple(tables)]  # noqa: UP007 - as many as there are
    return create_model(name, __base__=RootModel[Annotated[members, Field(discriminator="kind")]])


def argument_docs(constructor: object) -> dict[str, str]:
    """The arguments of a constructor as its docstring describes them."""
    _, _, args = (inspect.getdoc(constructor) or "").partition("Args:\n")
    block = textwrap.dedent(re.split(r"\n\S", args)[0])
    return {one[1]: sentence(one[2]) for one in re.finditer(r"^(\w+): (.+(?:\n +.+)*)", block, re.MULTILINE)}


def attribute_docs(cls: type) -> dict[str, str]:
    """The docstrings that stand under a class's fields."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: sentence(ast.literal_eval(docstring.value))
        for field, docstring in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(docstring, ast.Expr)
    }


def sentence(text: str) -> str:
    r"""Text on one line, its first letter a capital.

    >>> sentence("dollars for a\n    million tokens")
    'Dollars for a million tokens'
    """
    line = " ".join(text.split())
    return line[:1].upper() + line[1:]
