"""Parts of retrievers, each built once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from harness.experiment.class_options import PartConfig
from retrievers import encoder_class, reranker_class
from retrievers.errors import BackendError, InputError, Problem
from retrievers.options.placeholders import instantiate
from retrievers.options.user_code import wrap_user_errors
from retrievers.types import Encoder, Model, Reranker, Retriever

Part = TypeVar("Part", bound=Model | Retriever)


@dataclass(frozen=True, slots=True)
class PartPool:
    """The parts built so far: equal tables are one object, computed once."""

    parts: dict[str, Model | Retriever] = field(default_factory=dict)
    """Table as JSON, with "encoder" or "reranker" before that of a model -> part."""
    model_configs: dict[int, PartConfig] = field(default_factory=dict)
    """`id` of an encoder or a reranker -> its table."""

    def of_models(self) -> "PartPool":
        """Return a pool that shares the models alone."""
        models: dict[str, Model | Retriever] = {
            key: part for key, part in self.parts.items() if isinstance(part, Model)
        }
        return PartPool(models, self.model_configs)

    def get_or_build(self, key: str, build_part: Callable[[], Part]) -> Part:
        """Return the part of a key, built at the first request."""
        if key not in self.parts:
            self.parts[key] = build_part()
        return cast(Part, self.parts[key])

    def encoder(self, config: PartConfig) -> Encoder:
        """Return the encoder of a table."""
        encoder: Encoder = self._model("encoder", config, encoder_class)
        return encoder

    def reranker(self, config: PartConfig) -> Reranker:
        """Return the reranker of a table."""
        reranker: Reranker = self._model("reranker", config, reranker_class)
        return reranker

    def _model(
        self, part_kind: str, config: PartConfig, find_class: Callable[[str], type]
    ) -> Any:
        """Return the encoder or the reranker of a table, and remember its table."""
        model = self.get_or_build(
            f"{part_kind} {canonical_json(config.as_table())}",
            lambda: instantiate_part(find_class(config.kind), config.options),
        )
        self.model_configs[id(model)] = config
        return model


def canonical_json(table: Mapping[str, Any]) -> str:
    """Return the same text for equal tables."""
    return json.dumps(table, sort_keys=True, default=str)


def instantiate_part(cls: Any, options: Mapping[str, Any]) -> Any:
    """Return a part built from its options.

    The fingerprint of a model on this machine is computed here, since that reads its
    folder, whose problems are the user's.
    """
    try:
        with wrap_user_errors((cls,)):
            part = instantiate(cls, options)
            if isinstance(part, Model) and part.at_hand:
                _ = part.fingerprint
            return part
    except BackendError as failure:
        message = f"its options are refused: {failure}"
        remedy = "look at the documentation of its package"
        raise InputError(Problem("kind", message, remedy)) from failure
