"""The table of each kind of retriever.

The harness builds the kinds in `CONFIGS_BY_KIND`; any other kind is a class that
indexes and searches by itself (`CustomConfig`), whose options are checked by its
keyword arguments.
"""

from collections.abc import Mapping
from typing import Any

import pydantic
from pydantic import Field, model_serializer, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from harness.experiment.agent_config import AgentConfig
from harness.experiment.class_options import (
    kind_table,
    kind_union,
    options_model,
)
from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.raw_table import RawTable
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

CUSTOM_CONFIG_KEYS = ("name", "kind", "rerank", "filter", *OMITTED_WHEN_EMPTY)
"""The keys of a whole retriever that are not options of its class."""


class CustomConfig(RetrieverConfig):
    """A whole retriever that indexes and searches by itself, such as BM25 or one of
    another package.
    """  # noqa: D205  (the schema has this sentence)

    kind: str
    """What it is; left out where there is an encoder (dense), or a rerank with an `of`
    (rerank)."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched, as of a dense retriever; not where the system has an
    index of its own."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The keyword arguments of its class, defaults filled in; they follow `kind` in the
    file."""
    omitted_when_empty = ("unknown_hits",)

    @property
    def is_repeatable(self) -> bool:
        """Whether its class gives the same answer each time."""
        custom_class: type[Retriever] = retriever_class(self.kind)
        return custom_class.repeatable

    @property
    def own_trials(self) -> int:
        """The declared trials, else those of its class."""
        custom_class: type[Retriever] = retriever_class(self.kind)
        return self.trials or custom_class.default_trials

    @model_validator(mode="before")
    @classmethod
    def _collect_options(cls, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put the options of the class, which are beside its keys, under `options`."""
        raw_table = RawTable(table)
        options = raw_table.without(*CUSTOM_CONFIG_KEYS)
        config = raw_table.without(*options.options)
        kind = raw_table.get("kind")
        with as_validation_error():
            custom_class: type[Retriever] = retriever_class(str(kind))
            model = options_model(custom_class)
            if config.get("filter") and custom_class.own_index:
                problem = f"a retriever of kind {kind!r} has its own index"
                remedy = (
                    "filter where its index is: "
                    "in the body of the request, or in the function"
                )
                raise InputError(Problem("filter", problem, remedy))
            reserved = sorted(RESERVED_KEYS & model.model_fields.keys())
            if reserved:
                option = f"{custom_class.__name__} has an option {reserved[0]!r}"
                problem = f"{option}, which is a word of every experiment"
                remedy = "its package has to call it otherwise"
                raise InputError(Problem("kind", problem, remedy))
            checked = validated(model, options.options, "")
            table_of_options = checked.model_dump(by_alias=True)
            return config.with_options(options=table_of_options).options

    @model_serializer(mode="wrap")
    def _as_table(
        self, serialize: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        table: dict[str, Any] = serialize(self)
        options = table.pop("options")
        return {
            key: option
            for key, option in (table | options).items()
            if self._is_stored(key, option)
        }


CONFIGS_BY_KIND: dict[str, type[RetrieverConfig]] = {
    "agent": AgentConfig,
    "dense": DenseConfig,
    "fusion": FusionConfig,
    "multivector": MultivectorConfig,
    "rerank": RerankConfig,
    "sparse": SparseConfig,
}
"""Kinds of retrievers that the harness builds; any other kind is custom."""


class RetrieverSchema:
    """Annotates a retriever: in the schema it is a union of all kinds.

    Kinds of other packages are included.
    """

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of all kinds, with the options of custom classes."""
        custom_tables = [
            kind_table(retriever_class(kind), kind, CustomConfig)
            for kind in sorted(retriever_kinds())
        ]
        unions = (
            kind_union("Made", CONFIGS_BY_KIND.values()),
            kind_union("Standalone", custom_tables),
        )
        return {"anyOf": [handler(union.__pydantic_core_schema__) for union in unions]}
