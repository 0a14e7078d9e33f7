"""Which retriever uses which."""

from collections.abc import Iterator

from harness.experiment.agent_config import AgentConfig
from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.retriever_config import RetrieverConfig
from harness.experiment.vector_configs import DenseConfig


def direct_parts(config: RetrieverConfig) -> tuple[str | RetrieverConfig, ...]:
    """Return the retrievers that search for a retriever: names, or tables.

    The retriever whose vectors are cut or quantized (`derived_from`) is not among them:
    it does not search.
    """
    match config:
        case FusionConfig() | AgentConfig():
            return config.of
        case RerankConfig():
            return (config.of,)
    return ()


def used_retrievers(config: RetrieverConfig) -> tuple[str, ...]:
    """Return the names of the retrievers that a retriever needs.

    These are its parts, the parts of its inner tables, and `derived_from`.
    """
    return tuple(dict.fromkeys(_used_names(config)))


def _used_names(config: RetrieverConfig) -> Iterator[str]:
    match config:
        case DenseConfig(derived_from=str(base)):
            yield base
            return
    for part in direct_parts(config):
        if isinstance(part, str):
            yield part
        else:
            yield from _used_names(part)


def order_retrievers(configs: tuple[RetrieverConfig, ...]) -> list[RetrieverConfig]:
    """Return the retrievers, each after those that it uses."""
    waiting = list(configs)
    ordered: dict[str, RetrieverConfig] = {}
    while waiting:
        ready = next(
            config
            for config in waiting
            if ordered.keys() >= set(used_retrievers(config))
        )
        ordered[ready.name] = ready
        waiting.remove(ready)
    return list(ordered.values())
