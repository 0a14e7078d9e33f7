"""Tables of options: models whose fields are the options, and Python objects as tables; complaints name their key."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from retrievers import kind_of
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.user_objects import NamedObject

KEEPS_OBJECT = WrapValidator(
    lambda value, check: value if isinstance(value, NamedObject) else check(value)
)
"""Annotates a text that may carry an object of this process: it passes as it is."""
Text = Annotated[str, KEEPS_OBJECT]
Whole = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
OptionsType = TypeVar("OptionsType", bound=BaseModel)
NAME_RULE = "letters (A to Z), digits, '.', '_' and '-', begins with a letter or digit, and is at most 64 long"


class Strict(BaseModel):
    """A table whose keys are all known, whose values are of the right type and never change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Configured(Strict):
    """A part that consists of its options: its fields are what a table of an experiment file may say of it.

    >>> class Words(Configured):
    ...     first = "language"
    ...     language: str = ""
    >>> Words("en").language
    'en'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    first: ClassVar[str] = ""
    """The option that may be given without its name."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Check the options; raises InputError with what is wrong of each."""
        try:
            super().__init__(
                **dict(zip([self.first], given, strict=False)), **frozen(options)
            )
        except ValidationError as error:
            raise InputError(list(problems_of(error, type(self), ""))) from None

    def written(self) -> dict[str, Any]:
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


def checked(
    model: type[OptionsType], table: Mapping[str, Any], where: str
) -> OptionsType:
    """Validate a table, lists taken as tuples; every complaint becomes a Problem with its key."""
    try:
        return model.model_validate(frozen(table))
    except ValidationError as error:
        raise InputError(list(problems_of(error, model, where))) from None


def problems_of(
    error: ValidationError, model: type[BaseModel], where: str
) -> Iterator[Problem]:
    """What pydantic complains of, each with its key."""
    for fault in error.errors():
        place = below(where, fault["loc"])
        complaint = fault.get("ctx", {}).get("error")
        if isinstance(complaint, InvalidTable):
            for one in complaint.problems:
                yield one._replace(where=below(place, [one.where] if one.where else []))
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


def below(where: str, parts: Iterable[int | str]) -> str:
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


def frozen(value: Any) -> Any:
    """Lists as tuples, at every depth: what is strict takes no list for a tuple."""
    if isinstance(value, Mapping):
        return {key: frozen(inner) for key, inner in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


OF_LIBRARY = {
    "CrossEncoder": "cross-encoder",
    "MultiVectorEncoder": "multivector-encoder",
    "SentenceTransformer": "sentence-transformers",
    "SparseEncoder": "sparse-encoder",
}
"""Classes of sentence-transformers whose content is known -> kind."""


def encoder_table(model: Any) -> dict[str, Any]:
    """Return an encoder's table.

    Args:
        model: a local model's name or folder; a table; an encoder, such as `OpenAIEncoder("…")`; a model of
            sentence-transformers; anything with `encode`, or with `encode_query` and `encode_document`; a function of
            texts, or of texts and their role, that returns (n, d).

    Raises:
        InputError: it is none of these.

    >>> encoder_table("intfloat/e5-small-v2")
    {'kind': 'sentence-transformers', 'model': 'intfloat/e5-small-v2'}
    >>> encoder_table(lambda texts: [[len(text), 1.0] for text in texts])
    {'kind': 'python', 'call': 'object:part (<lambda>)'}
    """
    if isinstance(model, str | Path):
        return {"kind": "sentence-transformers", "model": str(model)}
    if isinstance(model, Mapping):
        return dict(model)
    if isinstance(model, Configured):
        return model.written()
    if found := library_kind(model):
        own = {
            "device": str(model.device),
            "truncate_dim": getattr(model, "truncate_dim", None),
        }
        taken = {key: value for key, value in own.items() if value is not None}
        return {"kind": found, "model": NamedObject.of(model), **taken}
    if callable(model) or any(
        hasattr(model, one) for one in ("encode", "encode_document")
    ):
        return {"kind": "python", "call": NamedObject.of(model)}
    what = f"an object of type {type(model).__name__} is no model"
    raise InputError(
        Problem(
            "encoder", what, "a name, an object with encode, or a function of texts"
        )
    )


def reranker_table(model: Any, depth: int | None) -> dict[str, Any]:
    """Return a reranker's table.

    Args:
        model: a CrossEncoder's name, folder or object; a table; or a reranker, such as `HttpReranker(…)`.
        depth: how many hits of each query are read again; None: what the reranker says, else 10.

    Raises:
        InputError: it is none of these.

    >>> reranker_table("cross-encoder/ms-marco-MiniLM-L6-v2", 20)
    {'kind': 'cross-encoder', 'model': 'cross-encoder/ms-marco-MiniLM-L6-v2', 'depth': 20}
    """
    given = {} if depth is None else {"depth": depth}
    if isinstance(model, Configured | Mapping):
        return {
            **(model.written() if isinstance(model, Configured) else model),
            **given,
        }
    if library_kind(model) == "cross-encoder":
        return {
            "kind": "cross-encoder",
            "model": NamedObject.of(model),
            "device": str(model.device),
            **given,
        }
    if not isinstance(model, str | Path):
        raise InputError(
            Problem(
                "reranker",
                f"a {type(model).__name__} is not a CrossEncoder",
                "or give its name",
            )
        )
    return {"kind": "cross-encoder", "model": str(model), **given}


def library_kind(model: Any) -> str:
    """The kind of a model that sentence-transformers made, asked in the library's own way; "" for any other object."""
    for cls in type(model).__mro__:
        if (
            cls.__module__.partition(".")[0] == "sentence_transformers"
            and cls.__name__ in OF_LIBRARY
        ):
            asked = "predict" if cls.__name__ == "CrossEncoder" else "encode"
            return (
                OF_LIBRARY[cls.__name__]
                if getattr(type(model), asked) is getattr(cls, asked)
                else ""
            )
    return ""
