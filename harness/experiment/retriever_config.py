"""The keys of every retriever."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, get_args

import pydantic
from pydantic import BeforeValidator, Field, model_serializer, model_validator

from harness.experiment.class_options import PartConfig, PartField
from retrievers import encoder_class, encoder_kinds, reranker_class, reranker_kinds
from retrievers.errors import InputError, Problem
from retrievers.options.tables import StrictTable, as_validation_error, validated

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
ValidName = Annotated[str, Field(pattern=NAME_PATTERN)]
SWEPT_NAME = (
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\[[A-Za-z0-9._+-][A-Za-z0-9._+, -]{0,119}\])?$"
)
"""The name of a retriever, after which a sweep writes its values, such as
`dense[MiniLM, 256]`."""
MAX_TRIALS = 100
"""More trials are refused as a mistake: each one is a search of all queries."""
OMITTED_WHEN_EMPTY = ("conversation", "floor", "comparable_scores", "trials")
"""Keys of every retriever that are left out of the manifest without a value."""
RESERVED_KEYS = {
    *OMITTED_WHEN_EMPTY,
    "name",
    "kind",
    "of",
    "encoder",
    "rerank",
    "store",
    "filter",
    "options",
}
"""What keys of retrievers mean everywhere: no option of a whole retriever has such a
name."""


EncoderField = Annotated[PartConfig, PartField("Encoder", encoder_class, encoder_kinds)]
RerankerField = Annotated[
    PartConfig, PartField("Reranker", reranker_class, reranker_kinds)
]


class ConversationConfig(StrictTable):
    """What is searched with where a query has a history."""

    text: str = Field(default="last", pattern=r"^(last|all|[\s\S]*\{query\}[\s\S]*)$")
    """The query alone ("last"), all that was said ("all"), or a text with {history} and
    {query}."""


class RetrieverConfig(StrictTable):
    """One `[[retrievers]]` table."""

    name: Annotated[str, Field(pattern=SWEPT_NAME)]
    """As in the report; names differ by more than case."""
    rerank: RerankerField | None = None
    """A reranker of the first hits."""
    conversation: ConversationConfig | None = None
    """What is searched with where a query has a history; left out, as [conversation]
    says."""
    floor: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Hits with a lower score are dropped: a query that nothing answers may then get an
    empty answer."""
    comparable_scores: bool = False
    """Whether scores can be compared between queries, as those of cosines and
    cross-encoders can."""
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = None
    """How often the run asks a retriever that may answer differently each time (agent,
    http, mcp, python); scores are averaged within the query."""
    omitted_when_empty: ClassVar[tuple[str, ...]] = ()
    """Keys that are left out of the manifest without a value, so that manifests of
    earlier versions have the same retriever."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it gives the same answer each time, if its parts do."""
        return True

    @property
    def parts(self) -> "tuple[str | RetrieverConfig, ...]":
        """The retrievers that search for it: names, or tables."""
        return ()

    @property
    def used_names(self) -> tuple[str, ...]:
        """The retrievers of the experiment that it needs: its parts, and theirs."""
        names: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                names.append(part)
            else:
                names += part.used_names
        return tuple(dict.fromkeys(names))

    @property
    def own_trials(self) -> int:
        """How often the run sends it a query; its parts have their own trials."""
        return self.trials or 1

    @model_validator(mode="after")
    def _trials_make_sense(self) -> Self:
        if self.trials is not None and self.is_repeatable:
            kind = getattr(self, "kind", "")
            raise ValueError(
                f"a retriever of kind {kind!r} answers the same each time; "
                "leave trials out"
            )
        return self

    @model_serializer(mode="wrap")
    def _as_table(
        self, serialize: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        table: dict[str, Any] = serialize(self)
        return {
            key: option for key, option in table.items() if self._is_stored(key, option)
        }

    def _is_stored(self, key: str, option: object) -> bool:
        """Whether a key is stored: some only with a value, which a floor of 0 is."""
        is_omitted = key in (*self.omitted_when_empty, *OMITTED_WHEN_EMPTY)
        is_floor = key == "floor" and option == 0
        return bool(option) or is_floor or not is_omitted


class QueryFieldRef(StrictTable):
    """A field of the query whose value a document must have."""

    query: str
    """The field's name."""


def _check_required_values(required: object) -> object:
    """Return a filter's value; refuse what has none of its forms, in one sentence.

    Pydantic's union would have an error for each form.
    """
    if isinstance(required, Mapping):
        with as_validation_error():
            return validated(QueryFieldRef, required, "")
    texts = required if isinstance(required, tuple) else (required,)
    is_text = bool(texts) and all(isinstance(text, str) for text in texts)
    if not is_text and not isinstance(required, QueryFieldRef):
        as_written = list(required) if isinstance(required, tuple) else required
        forms = '"value", ["value", …] with one or more, or { query = "field" }'
        raise ValueError(f"{as_written!r}: should be {forms}")
    return required


FieldFilter = dict[
    str,
    Annotated[
        str | Annotated[tuple[str, ...], Field(min_length=1)] | QueryFieldRef,
        BeforeValidator(_check_required_values),
    ],
]


def check_vector_form(encoder_kind: str, form: object) -> None:
    """Refuse an encoder whose vectors have another form than a retriever needs.

    Args:
        encoder_kind: the kind of the encoder.
        form: the form, as the type of a key `kind`.

    Raises:
        InputError: they have another form.
    """
    needed_form = get_args(form)[0]
    encoder_form = getattr(encoder_class(encoder_kind), "form", needed_form)
    if encoder_form == needed_form:
        return
    encoder_name = f"the encoder {encoder_kind!r}"
    problem = f"{encoder_name} gives {encoder_form} vectors, not {needed_form} ones"
    remedy = f'it belongs to a retriever of kind = "{encoder_form}"'
    raise InputError(Problem("kind", problem, remedy))
