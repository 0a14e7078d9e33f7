"""Tables of options."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core import ErrorDetails

from retrievers import kind_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.user_code import NamedObject

PASS_NAMED_OBJECT = WrapValidator(
    lambda value, check: value if isinstance(value, NamedObject) else check(value)
)
"""Annotates a text that may carry an object of this process, which is not checked."""
TextOrObject = Annotated[str, PASS_NAMED_OBJECT]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeNumber = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OptionsType = TypeVar("OptionsType", bound=BaseModel)
NAME_RULE = (
    "letters (A to Z), digits, '.', '_' and '-', begins with a letter or digit, "
    "and is at most 64 long"
)
MAX_SHOWN_VALUE = 60
"""Characters from which on a value is shortened in a message."""


class StrictTable(BaseModel):
    """A table with known keys and strict types, which never changes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Configured(StrictTable):
    """A part whose fields are the options in its table of an experiment file.

    In Python an option may be a `Path`, which becomes a text.

    >>> class Words(Configured):
    ...     positional_option = "language"
    ...     language: str = ""
    >>> Words("en").language
    'en'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    positional_option: ClassVar[str] = ""
    """The option that may be set without its name."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Check the options; raise InputError with each that is wrong by itself."""
        _check_positional_options(type(self).__name__, self.positional_option, args)
        if args:
            options = {self.positional_option: args[0], **options}
        texts = {name: str(o) for name, o in options.items() if isinstance(o, Path)}
        try:
            super().__init__(**lists_as_tuples({**options, **texts}))
        except ValidationError as error:
            raise InputError(list(validation_problems(error, type(self), ""))) from None

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file, with the options that are set."""
        options = self.model_dump(by_alias=True, exclude_unset=True)
        return {"kind": kind_of(type(self)), **dict(sorted(options.items()))}


def _check_positional_options(
    class_name: str, positional_option: str, args: Sequence[object]
) -> None:
    """Refuse values without a name, except one for the positional option.

    Raises:
        InputError: there are more.
    """
    if not args or (positional_option and len(args) == 1):
        return
    problem = "a value has no name of an option"
    remedy = "write option=value"
    if positional_option:
        remedy = f"only {positional_option} needs no name; for others {remedy}"
    raise InputError(Problem(class_name, problem, remedy))


class InvalidTable(ValueError):
    """A validator's error for pydantic.

    Its problems have keys relative to the table that is checked.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


@contextmanager
def as_validation_error() -> Iterator[None]:
    """Turn an InputError inside into a validator's error; pydantic adds its keys."""
    try:
        yield
    except InputError as error:
        raise InvalidTable(error.problems) from None


def validated(
    model: type[OptionsType], table: Mapping[str, Any], where: str
) -> OptionsType:
    """Return a validated table, in which lists become tuples.

    Args:
        model: the options that the table may have. A `Configured` checks itself and
            ignores `where`: for one, a model of its fields.
        table: as it was read.
        where: the path of its key, which comes before the keys in problems.

    Raises:
        InputError: has a problem with its key for each of pydantic's errors.
    """
    try:
        return model.model_validate(lists_as_tuples(table))
    except ValidationError as error:
        raise InputError(list(validation_problems(error, model, where))) from None


def validation_problems(
    error: ValidationError, model: type[BaseModel], where: str
) -> Iterator[Problem]:
    """Yield a problem with its key for each of pydantic's errors.

    Where an unknown key is nearest to a missing one, only the unknown one is reported.
    """
    errors = error.errors()
    misspelt = _misspelt_keys(errors, model)
    for details in errors:
        if details["type"] == "missing" and details["loc"] in misspelt:
            continue
        path = key_path(where, details["loc"])
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, InvalidTable):
            for problem in cause.problems:
                inner_path = [problem.where] if problem.where else []
                yield problem._replace(where=key_path(path, inner_path))
        elif details["type"] == "extra_forbidden":
            *table_path, key = details["loc"]
            remedy = did_you_mean(str(key), _allowed_keys(model, table_path))
            yield Problem(path, f"unknown key {key!r}", remedy)
        else:
            yield Problem(path, _describe(details))


def _misspelt_keys(
    errors: Sequence[ErrorDetails], model: type[BaseModel]
) -> set[tuple[int | str, ...]]:
    """Return the keys that unknown ones are nearest to, each with its path."""
    misspelt: set[tuple[int | str, ...]] = set()
    for details in errors:
        if details["type"] == "extra_forbidden":
            *table_path, key = details["loc"]
            nearest = get_close_matches(str(key), _allowed_keys(model, table_path), 1)
            misspelt |= {(*table_path, nearest_key) for nearest_key in nearest}
    return misspelt


def _describe(details: ErrorDetails) -> str:
    """Return one of pydantic's errors in words."""
    if details["type"] == "missing":
        return "is missing"
    if details["type"] == "too_short":
        return f"needs at least {details['ctx']['min_length']}"
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, ValueError):
        return str(cause)
    message = _simplify_message(details["msg"])
    if details["type"] == "string_pattern_mismatch" and details["loc"][-1] == "name":
        message = f"a name has {NAME_RULE}"
    value = details["input"]
    if isinstance(value, tuple):  # TOML has lists
        value = list(value)
    shown_value = repr(value)
    if len(shown_value) >= MAX_SHOWN_VALUE:
        shown_value = shown_value[: MAX_SHOWN_VALUE - 3] + "…"
    return f"{shown_value}: {message}"


def _simplify_message(message: str) -> str:
    """Return one of pydantic's messages in the words of an experiment file."""
    if "should be a valid dictionary" in message or "or an instance of" in message:
        return "should be a table"
    for subject in ("Input", "String"):
        message = message.replace(f"{subject} should", "should")
    return message.replace("valid tuple", "list")


def key_path(where: str, keys: Iterable[int | str]) -> str:
    """Return the path of a key, or of a position in a list, below another key."""
    for key in keys:
        if isinstance(key, int):
            where += f"[{key}]"
        elif where:
            where += f".{key}"
        else:
            where = key
    return where


def _allowed_keys(model: Any, path: Iterable[int | str]) -> list[str]:
    """Return the keys of a table inside a model.

    All tables of a list, of a union, and below keys that the user chooses, have the
    keys of one model.
    """
    for key in path:
        if key in model.model_fields:
            model = next(_models_in(model.model_fields[key].annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, also inside unions and lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner_annotation in get_args(annotation):
        yield from _models_in(inner_annotation)


def lists_as_tuples(value: Any) -> Any:
    """Return lists as tuples, at every depth: strict models refuse lists for tuples."""
    if isinstance(value, Mapping):
        return {key: lists_as_tuples(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(map(lists_as_tuples, value))
    return value
