"""Tables of composed retrievers."""

from typing import Annotated, Literal, Self

import pydantic
from pydantic import Field, SerializeAsAny, model_validator

from harness.experiment.retriever_config import RerankerField, RetrieverConfig
from retrievers.fused import FusionMethod, check_fusion_numbers
from retrievers.options.tables import as_validation_error

NestedRetriever = Annotated[
    SerializeAsAny[RetrieverConfig], pydantic.WithJsonSchema({"type": "object"})
]
"""A part without a name of its own: a table as under [[retrievers]]."""


class FusionConfig(RetrieverConfig):
    """Fusion of other retrievers' rankings."""

    kind: Literal["fusion"]
    """What it is."""
    of: tuple[str | NestedRetriever, ...] = Field(min_length=2)
    """The retrievers that this one uses: names, or tables without a name."""
    method: FusionMethod = "rrf"
    """By ranks (rrf: reciprocal rank fusion), by scores of one scale (dbsf:
    distribution-based score fusion), or by scores between the query's lowest and
    highest (convex)."""
    constant: float = Field(default=60, gt=0, allow_inf_nan=False)
    """For rrf: the number that is added to every rank; the first rank is 1."""
    weights: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = ()
    """How much each ranking counts, in the order of `of`; left out, all alike."""
    minimum: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    """For convex: the lowest score that each retriever could give, such as [0, -1] for
    BM25 and cosine; left out, the lowest of its hits. A minimum that no hit of a query
    is above, though some are below, is refused."""
    omitted_when_empty = ("weights", "minimum")

    @property
    def parts(self) -> tuple[str | RetrieverConfig, ...]:
        """The retrievers whose rankings it fuses."""
        return self.of

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [name for name in self.of if isinstance(name, str)]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(
                f"{', '.join(map(repr, repeated))} occurs twice in `of`; "
                "name each retriever once"
            )
        return self

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        with as_validation_error():
            check_fusion_numbers(
                self.method, self.weights, self.minimum, part_count=len(self.of)
            )
        return self


class RerankConfig(RetrieverConfig):
    """Another retriever, its first hits put into a better order."""

    kind: Literal["rerank"] = "rerank"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of`
    (rerank)."""
    of: str | NestedRetriever
    """The retriever whose hits are reranked: a name, or a table without one."""
    rerank: RerankerField
    """A reranker of the first hits."""

    @property
    def parts(self) -> tuple[str | RetrieverConfig, ...]:
        """The retriever whose first hits it puts into a better order."""
        return (self.of,)
