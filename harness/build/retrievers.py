"""Configurations to retrievers.

Retrievers are built after those that they use. Parts of equal tables are one object, so
that documents are embedded and indexed once; only an agent has retrievers of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.build.agents import build_agent
from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import name_retriever
from harness.build.part_pool import PartPool, canonical_json, instantiate_part
from harness.experiment.agent_config import AgentConfig
from harness.experiment.class_options import PartConfig
from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.retriever_config import QueryFieldRef, RetrieverConfig
from harness.experiment.retriever_schema import CustomConfig
from harness.experiment.vector_configs import DenseConfig, VectorRetrieverConfig
from retrievers import retriever_class
from retrievers.conditions import Condition, parse_conditions
from retrievers.dense import Dense
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.filtered import Filtered, SupportsFilter
from retrievers.fused import Fused
from retrievers.options.user_code import NamedObject
from retrievers.reranked import Reranked
from retrievers.types import Encoder, Retriever
from retrievers.vector_reduction import VectorReduction

DIMENSIONS_OPTION = "dimensions"
"""The option by which an encoder requests fewer dimensions from its service."""


def build_retrievers(
    configs: Sequence[RetrieverConfig],
) -> tuple[BuiltRetriever, ...]:
    """Build the retrievers of an experiment, each after those that it uses.

    Raises:
        InputError: the problems of every retriever.
    """
    pool = PartPool()
    by_name = {config.name: config for config in configs}
    retrievers: dict[str, Retriever] = {}
    built: list[BuiltRetriever] = []
    problems: list[Problem] = []
    for config in _in_order_of_use(configs):
        with collect_errors(problems, partial(name_retriever, config.name)):
            uses = config.used_names
            if not set(uses) <= retrievers.keys():
                continue  # the problem of its part is reported
            builder = RetrieverBuilder(pool, retrievers, by_name)
            retriever = builder.build(config)
            retrievers[config.name] = retriever
            conversation = config.conversation
            built.append(
                BuiltRetriever(
                    config.name,
                    retriever,
                    uses=uses,
                    part_names=builder.part_names,
                    conditions=tuple(_conditions(config)),
                    model_configs=pool.model_configs,
                    conversation=conversation.text if conversation else "last",
                    min_score=config.floor,
                    trials=_trials(config, {part.name: part.trials for part in built}),
                )
            )
    problems += _shared_version_problems(pool.model_configs.values())
    if problems:
        raise InputError(problems)
    return tuple(built)


def _shared_version_problems(configs: Iterable[PartConfig]) -> Iterator[Problem]:
    """Yield a problem for each further function under another one's name in the cache.

    It would be given the other's vectors. Objects of Python may be copies of one model.
    """
    first_calls: dict[str, str] = {}
    for config in configs:
        version = config.options.get("cache")
        call = config.options.get("call")
        if config.kind != "python" or not version or isinstance(call, NamedObject):
            continue
        first_call = first_calls.setdefault(version, str(call))
        if first_call != call:
            problem = f"{version!r} is the name of {first_call} and of {call}"
            remedy = "give each function a name of its own"
            yield Problem("encoder.cache", problem, remedy)


def _in_order_of_use(configs: Sequence[RetrieverConfig]) -> list[RetrieverConfig]:
    """Return the retrievers, each after those that it uses; there is no circle.

    The first in the file whose parts are placed comes next: shared work is billed to
    the first that needs it.
    """
    waiting = list(configs)
    ordered: dict[str, RetrieverConfig] = {}
    while waiting:
        ready = next(
            config for config in waiting if ordered.keys() >= set(config.used_names)
        )
        ordered[ready.name] = ready
        waiting.remove(ready)
    return list(ordered.values())


def _trials(config: RetrieverConfig, trials_by_name: Mapping[str, int]) -> int:
    """Return how often a retriever answers: at least as often as each of its parts."""
    trials = [config.own_trials]
    for part in config.parts:
        if isinstance(part, str):
            trials.append(trials_by_name[part])
        else:
            trials.append(_trials(part, trials_by_name))
    return max(trials)


@dataclass(frozen=True, slots=True)
class RetrieverBuilder:
    """Builds one retriever of an experiment out of those before it."""

    pool: PartPool
    retrievers: Mapping[str, Retriever]
    """The retrievers of the experiment that are built already."""
    configs: Mapping[str, RetrieverConfig]
    """The tables of all retrievers of the experiment."""
    part_names: dict[int, str] = field(default_factory=dict)
    """`id` of a part -> its name, of those that this retriever uses."""

    def build(self, config: RetrieverConfig) -> Retriever:
        """Return the retriever of a table, with its reranker if it has one."""
        retriever = self._build_first_stage(config)
        if config.rerank is None:
            return retriever
        return Reranked(retriever, self.pool.reranker(config.rerank))

    def _build_first_stage(self, config: RetrieverConfig) -> Retriever:
        """Return the retriever of a table without its reranker."""
        match config:
            case FusionConfig():
                parts = tuple(self._part(part) for part in config.of)
                return Fused(
                    parts,
                    config.method,
                    config.constant,
                    config.weights,
                    config.minimum,
                )
            case AgentConfig():
                return build_agent(config, self._own_searches(config))
            case RerankConfig():
                return self._part(config.of)
            case VectorRetrieverConfig():
                key = _shared_key(config)
                return self.pool.get_or_build(key, lambda: self._dense(config))
            case CustomConfig():
                key = _shared_key(config)
                return self.pool.get_or_build(key, lambda: _custom(config))
            case _:
                raise TypeError(f"{type(config).__name__} is no retriever")

    def _part(self, part: str | RetrieverConfig) -> Retriever:
        """Return a retriever of the experiment by name, or that of an inner table."""
        if isinstance(part, RetrieverConfig):
            return self.build(part)
        retriever = self.retrievers[part]
        self.part_names[id(retriever)] = part
        return retriever

    def _own_searches(self, config: AgentConfig) -> dict[str, Retriever]:
        """Return the retrievers that an agent searches with, built for it alone.

        It sends them its own queries, even if the run has their answers from before and
        does not index them. Models are shared.
        """
        pool = self.pool.of_models()
        agent_retrievers: dict[str, Retriever] = {}
        builder = RetrieverBuilder(pool, agent_retrievers, self.configs)
        names = _names_below(config, self.configs)
        for part in _in_order_of_use([self.configs[name] for name in names]):
            agent_retrievers[part.name] = builder.build(part)
        return {name: agent_retrievers[name] for name in config.of}

    def _dense(self, config: VectorRetrieverConfig) -> Dense:
        """Return the search by the vectors of a table, in any form of vectors."""
        encoder = self.pool.encoder(config.encoder)
        reduction = None
        if isinstance(config, DenseConfig):
            reduction = VectorReduction(
                config.dimensions,
                config.quantization,
                self._native_encoder(config, encoder),
                config.derived_from or "",
            )
        # Retrievers with equal tables share this object: it has the first one's name.
        return Dense(
            encoder,
            store=config.store,
            chunk=config.chunk,
            conditions=_conditions(config),
            reduction=reduction,
            name=config.name,
        )

    def _native_encoder(self, config: DenseConfig, encoder: Encoder) -> Encoder | None:
        """Return the encoder that requests the reduced size from its service.

        None if the vectors are not reduced, not verified, or come from no service with
        an option for their size.
        """
        if config.dimensions is None or not config.proof or encoder.limits is None:
            return None
        options = config.encoder.options
        if DIMENSIONS_OPTION not in options:
            return None
        native_config = PartConfig(
            kind=config.encoder.kind,
            options={**options, DIMENSIONS_OPTION: config.dimensions},
        )
        try:
            return self.pool.encoder(native_config)
        except InputError as error:
            remedy = "proof = false takes the cut vectors as they are"
            raise InputError(
                [
                    Problem("dimensions", problem.what, remedy)
                    for problem in error.problems
                ]
            ) from None


def _names_below(
    config: RetrieverConfig, configs: Mapping[str, RetrieverConfig]
) -> tuple[str, ...]:
    """Return the names of the retrievers that a table uses, directly or not."""
    names: dict[str, None] = {}
    for name in config.used_names:
        names |= dict.fromkeys([*_names_below(configs[name], configs), name])
    return tuple(names)


def _shared_key(config: RetrieverConfig) -> str:
    """Return the key of the part that equal tables share.

    Names and rerankers do not count: a reranker is built around the shared part.
    """
    return canonical_json(config.model_dump(exclude={"name", "rerank"}))


def _custom(config: CustomConfig) -> Retriever:
    """Build a retriever with an index of its own, behind its filter if it has one."""
    retriever: Retriever = instantiate_part(
        retriever_class(config.kind), config.options
    )
    conditions = _conditions(config)
    if not conditions:
        return retriever
    if not isinstance(retriever, SupportsFilter):
        return Filtered(retriever, conditions)
    retriever.set_filter(conditions)
    return retriever


def _conditions(config: RetrieverConfig) -> list[Condition]:
    """Return what the filter of a table, and of its inner tables, requires."""
    conditions: list[Condition] = []
    if isinstance(config, VectorRetrieverConfig | CustomConfig):
        conditions += parse_conditions(
            {
                name: (
                    condition.model_dump()
                    if isinstance(condition, QueryFieldRef)
                    else condition
                )
                for name, condition in config.filter.items()
            }
        )
    for part in config.parts:
        if isinstance(part, RetrieverConfig):
            conditions += _conditions(part)
    return conditions
