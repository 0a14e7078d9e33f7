"""Tables of vector retrievers.

One for each form of vectors: dense, sparse, multivector. The encoder must give that
form, and the store must take it.
"""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator

from harness.experiment.class_options import PartConfig, options_model, shown_as
from harness.experiment.retriever_config import (
    EncoderField,
    FieldFilter,
    RetrieverConfig,
    check_vector_form,
)
from harness.experiment.table_values import unset_variables
from retrievers.errors import InputError, Problem
from retrievers.options.placeholders import expand, redact_url_users
from retrievers.options.tables import StrictTable, as_validation_error, validated
from retrievers.ragged import VectorForm
from retrievers.stores.options import StoreOptions
from retrievers.stores.quantized import NumberFormat
from retrievers.texts.chunking import Chunk

StoreField = Annotated[dict[str, Any], shown_as(str | StoreOptions, "location")]


class DerivedVectorsConfig(StrictTable):
    """Further retrievers from the vectors of this one: every choice of `dimensions`, of
    `quantization`, and of both.
    """  # noqa: D205  (the schema has this sentence)

    dimensions: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Leading numbers that are kept of each vector, which is scaled to length 1 again:
    NAME-256."""
    quantization: tuple[NumberFormat, ...] = ()
    """Smaller numbers: NAME-int8, and with dimensions NAME-256-int8."""
    proof: bool = True
    """Whether 20 texts must show, before it is believed, that a service which has
    dimensions of its own gives what cutting gives."""

    @model_validator(mode="after")
    def _gives_something(self) -> Self:
        if not self.dimensions and not self.quantization:
            raise ValueError(
                "names neither dimensions nor quantization; "
                "write derive = { dimensions = [256] }"
            )
        _check_repeated("dimensions", self.dimensions)
        _check_repeated("quantization", self.quantization)
        return self


def _check_repeated(key: str, choices: tuple[int | str, ...]) -> None:
    """Raise ValueError if a choice occurs twice."""
    for choice in choices:
        if choices.count(choice) > 1:
            raise ValueError(f"{key} names {choice} twice")


class VectorRetrieverConfig(RetrieverConfig):
    """The documents whose vectors are nearest to the query's, in one collection."""

    kind: VectorForm
    """The form of a text's vectors, which the encoder gives."""
    encoder: EncoderField
    """What turns texts into vectors."""
    store: StoreField = Field(default_factory=dict)
    """Where the vectors are: `:memory:`, `edge`, a folder, a server's URL, or a table
    that says more."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched: field = "value", several values, or { query =
    "field" }, the query's own."""
    chunk: Chunk | None = None
    """Cut long documents into passages; a document is worth its best one."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Further retrievers by the same model, NAME-KEY, each with options of the encoder
    in place of those above: { plain = { query_prompt = "" } }."""
    omitted_when_empty = ("derive", "variants")

    @field_validator("encoder")
    @classmethod
    def _of_this_form(cls, encoder: PartConfig) -> PartConfig:
        with as_validation_error():
            check_vector_form(encoder.kind, cls.model_fields["kind"].annotation)
        return encoder

    @field_validator("store")
    @classmethod
    def _can_be_opened(
        cls, store: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        if not store:
            return store
        with as_validation_error():
            model = validated(options_model(StoreOptions), store, "")
            _check_store(model, info.data.get("kind", ""))
            return model.model_dump()

    @field_validator("variants")
    @classmethod
    def _of_one_kind(
        cls, variants: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        for name, options in variants.items():
            if "kind" in options:
                raise ValueError(
                    f"{name!r} has another kind: write another retriever for it"
                )
        return variants


class DenseConfig(VectorRetrieverConfig):
    """Nearest neighbours by cosine in one collection of vectors."""

    kind: Literal["dense"] = "dense"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of`
    (rerank)."""
    dimensions: int | None = Field(default=None, ge=1)
    """Leading numbers that are kept of each of the encoder's vectors, which is scaled
    to length 1 again."""
    quantization: NumberFormat | None = None
    """How vectors are made smaller: one byte a dimension (int8), or one bit, compared
    by the bits of the query (binary) or by its full numbers (binary-dot). They are
    searched exactly, in memory."""
    proof: bool = True
    """Whether 20 texts must show that a service which has dimensions of its own gives
    what cutting gives."""
    derived_from: str | None = None
    """The retriever whose vectors these are; where it fails, this one does not ask
    again."""
    derive: DerivedVectorsConfig | None = None
    """Further retrievers from the same vectors; nothing is embedded for them."""

    @property
    def used_names(self) -> tuple[str, ...]:
        """The retriever whose vectors these are: needed, though it does not search."""
        return () if self.derived_from is None else (self.derived_from,)

    @model_validator(mode="after")
    def _one_compression(self) -> Self:
        is_approximate = self.store.get("m") or self.store.get("quantization")
        if self.quantization and is_approximate:
            raise ValueError(
                "quantization is searched exactly: "
                "give the store neither m nor quantization"
            )
        return self


class SparseConfig(VectorRetrieverConfig):
    """Learned sparse retrieval: weights of a vocabulary's words, compared by their dot
    product.
    """  # noqa: D205  (the schema has this sentence)

    kind: Literal["sparse"]
    """What it is."""


class MultivectorConfig(VectorRetrieverConfig):
    """Late interaction: a vector for each token, compared by MaxSim."""

    kind: Literal["multivector"]
    """What it is."""


def _check_store(model: BaseModel, form: str) -> None:
    """Refuse a store that does not support the form of its vectors.

    Args:
        model: the store's options, whose types are checked.
        form: the form of the vectors.

    Raises:
        InputError: with every option that does not fit.
    """
    options = model.model_dump()
    # If a variable is not set, which is another problem, options stay as written.
    has_unset_variables = any(unset_variables(options))
    expanded = options if has_unset_variables else expand(options)
    try:
        store = StoreOptions(**expanded)
        if form in get_args(VectorForm):
            store.check(form)
    except InputError as error:
        problems = [_without_store_key(problem) for problem in error.problems]
        raise InputError(problems) from None


def _without_store_key(problem: Problem) -> Problem:
    """Return a problem of a store without its key and without users in URLs."""
    key = problem.where.removeprefix("store").removeprefix(".")
    return problem._replace(where=key, what=redact_url_users(problem.what))
