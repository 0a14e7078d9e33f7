"""The table of each kind of retriever."""

from collections.abc import Mapping
from typing import Any

import pydantic
from pydantic import Field, model_serializer, model_validator
from pydantic_core import CoreSchema

from harness.experiment.class_options import (
    JsonSchema,
    kind_table,
    kind_union,
    options_model,
)
from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.retriever_config import (
    OMITTED_WHEN_EMPTY,
    RESERVED_KEYS,
    FieldFilter,
    RetrieverConfig,
)
from harness.experiment.vector_configs import (
    DenseConfig,
    MultivectorConfig,
    SparseConfig,
)
from retrievers import retriever_class, retriever_kinds
from retrievers.errors import InputError, Problem
from retrievers.options.tables import as_validation_error, validated
from retrievers.types import Retriever

CUSTOM_CONFIG_KEYS = ("name", "kind", "rerank", "color", "filter", *OMITTED_WHEN_EMPTY)
"""The keys of a whole retriever that are not options of its class."""


class CustomConfig(RetrieverConfig):
    """A whole retriever that indexes and searches by itself, such as BM25 or one of another package."""

    kind: str
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched, as of a dense retriever; not where the system has an index of its own."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The keyword arguments of its class, defaults filled in; they follow `kind` in the file."""
    omitted_when_empty = ("unknown_hits",)

    @model_validator(mode="before")
    @classmethod
    def _options_apart(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: value for key, value in table.items() if key in CUSTOM_CONFIG_KEYS}
        with as_validation_error():
            found: type[Retriever] = retriever_class(str(table["kind"]))
            options = options_model(found)
            if own.get("filter") and found.own_index:
                remedy = "filter where its index is: in the body of the request, or in the function"
                what = f"a retriever of kind {table['kind']!r} has its own index"
                raise InputError(Problem("filter", what, remedy))
            if taken := sorted(RESERVED_KEYS & options.model_fields.keys()):
                what = f"{found.__name__} has an option {taken[0]!r}, which is a word of every experiment"
                raise InputError(
                    Problem("kind", what, "its package has to call it otherwise")
                )
            others = {key: value for key, value in table.items() if key not in own}
            return {
                **own,
                "options": validated(options, others, "").model_dump(by_alias=True),
            }

    @model_serializer(mode="wrap")
    def _options_beside(
        self, table_of: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        table: dict[str, Any] = table_of(self)
        return self._spoken(table | table.pop("options"))


CONFIGS_BY_KIND: dict[str, type[RetrieverConfig]] = {
    "dense": DenseConfig,
    "fusion": FusionConfig,
    "multivector": MultivectorConfig,
    "rerank": RerankConfig,
    "sparse": SparseConfig,
}
"""Blocks that the harness makes; any other kind is a whole retriever."""


class RetrieverSchema:
    """Annotates a retriever: to a reader of the schema it is a union of all kinds, those of other packages too."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchema:
        """Blocks that the harness makes, and whole retrievers with the options of their classes."""
        whole = [
            kind_table(retriever_class(kind), kind, CustomConfig)
            for kind in sorted(retriever_kinds())
        ]
        made, others = (
            kind_union("Made", CONFIGS_BY_KIND.values()),
            kind_union("Standalone", whole),
        )
        return {
            "anyOf": [
                handler(model.__pydantic_core_schema__) for model in (made, others)
            ]
        }
