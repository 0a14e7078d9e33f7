"""Which retriever uses which."""

from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.retriever_config import RetrieverConfig
from harness.experiment.vector_configs import DenseConfig


def direct_parts(block: RetrieverConfig) -> tuple[str | RetrieverConfig, ...]:
    """What a block uses: names of retrievers, or tables."""
    match block:
        case FusionConfig():
            return block.of
        case RerankConfig():
            return (block.of,)
    return ()


def used_retrievers(block: RetrieverConfig) -> tuple[str, ...]:
    """The names of the retrievers that a block uses, those in its own tables too."""
    match block:
        case DenseConfig(derived_from=str(base)):
            return (base,)
    names = [
        (part,) if isinstance(part, str) else used_retrievers(part)
        for part in direct_parts(block)
    ]
    return tuple(dict.fromkeys(name for some in names for name in some))


def order_retrievers(blocks: tuple[RetrieverConfig, ...]) -> list[RetrieverConfig]:
    """Return the blocks, each after those it uses."""
    waiting, placed = list(blocks), dict[str, RetrieverConfig]()
    while waiting:
        block = next(
            block for block in waiting if placed.keys() >= set(used_retrievers(block))
        )
        placed[block.name] = block
        waiting.remove(block)
    return list(placed.values())
