"""Tables of options."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from retrievers import kind_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.user_code import NamedObject

PASS_NAMED_OBJECT = WrapValidator(
    lambda value, check: value if isinstance(value, NamedObject) else check(value)
)
"""Annotates a text that may carry an object of this process: it passes as it is."""
TextOrObject = Annotated[str, PASS_NAMED_OBJECT]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeNumber = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OptionsType = TypeVar("OptionsType", bound=BaseModel)
NAME_RULE = "letters (A to Z), digits, '.', '_' and '-', begins with a letter or digit, and is at most 64 long"


class StrictTable(BaseModel):
    """A table whose keys are all known, whose values are of the right type and never change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Configured(StrictTable):
    """A part that consists of its options: its fields are what a table of an experiment file may say of it.

    >>> class Words(Configured):
    ...     positional_option = "language"
    ...     language: str = ""
    >>> Words("en").language
    'en'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    positional_option: ClassVar[str] = ""
    """The option that may be given without its name."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Check the options; raises InputError with what is wrong of each."""
        try:
            super().__init__(
                **dict(zip([self.positional_option], given, strict=False)),
                **lists_as_tuples(options),
            )
        except ValidationError as error:
            raise InputError(list(validation_problems(error, type(self), ""))) from None

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        return {
            "kind": kind_of(type(self)),
            **dict(sorted(self.model_dump(by_alias=True, exclude_unset=True).items())),
        }


class InvalidTable(ValueError):
    """What a validator tells pydantic: problems, each with its key below the value that is checked."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


@contextmanager
def as_validation_error() -> Iterator[None]:
    """Let what is raised inside be a complaint of a validator, the keys in front of it added by pydantic."""
    try:
        yield
    except InputError as error:
        raise InvalidTable(error.problems) from None


def validated(
    model: type[OptionsType], table: Mapping[str, Any], where: str
) -> OptionsType:
    """Validate a table, lists taken as tuples; every complaint becomes a Problem with its key."""
    try:
        return model.model_validate(lists_as_tuples(table))
    except ValidationError as error:
        raise InputError(list(validation_problems(error, model, where))) from None


def validation_problems(
    error: ValidationError, model: type[BaseModel], where: str
) -> Iterator[Problem]:
    """What pydantic complains of, each with its key."""
    for fault in error.errors():
        place = key_path(where, fault["loc"])
        complaint = fault.get("ctx", {}).get("error")
        if isinstance(complaint, InvalidTable):
            for one in complaint.problems:
                yield one._replace(
                    where=key_path(place, [one.where] if one.where else [])
                )
        elif fault["type"] == "extra_forbidden":
            *outer, key = fault["loc"]
            yield Problem(
                place,
                f"unknown key {key!r}",
                did_you_mean(str(key), _keys(model, outer)),
            )
        elif fault["type"] == "missing":
            yield Problem(place, "is missing")
        elif fault["type"] == "too_short":
            yield Problem(place, f"needs at least {fault['ctx']['min_length']}")
        elif isinstance(complaint, ValueError):
            yield Problem(place, str(complaint))
        else:
            value = fault["input"]
            shown = repr(
                list(value) if isinstance(value, tuple) else value
            )  # TOML has lists
            yield Problem(
                place,
                f"{shown if len(shown) < 60 else shown[:57] + '…'}: {_plain(fault['msg'])}",
            )


def key_path(where: str, parts: Iterable[int | str]) -> str:
    """A key, or a place in a list, below another."""
    for part in parts:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else part
    return where


def _keys(model: Any, path: list[int | str]) -> list[str]:
    """The keys that a table inside a model may have; a place in a list has those of the list's tables."""
    for part in path:
        if isinstance(part, str):
            model = next(_models_in(model.model_fields[part].annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names, also inside unions and lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _plain(message: str) -> str:
    if "should match pattern" in message:
        return f"a name has {NAME_RULE}"
    if "should be a valid dictionary" in message:
        return "should be a table"
    return message.replace("Input should be", "should be").replace(
        "valid tuple", "list"
    )


def lists_as_tuples(value: Any) -> Any:
    """Lists as tuples, at every depth: what is strict takes no list for a tuple."""
    if isinstance(value, Mapping):
        return {key: lists_as_tuples(inner) for key, inner in value.items()}
    return tuple(map(lists_as_tuples, value)) if isinstance(value, list) else value
