"""What labelling the rankings would take."""

from shlex import quote
from typing import NamedTuple

from harness.english import count_of
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.records import Results
from harness.scoring.stored_scores import rankings_by_retriever

SECONDS_PER_JUDGMENT = 20
"""What a person takes for a judgment."""


class JudgingEffort(NamedTuple):
    """What judging these rankings takes, and where it tells most."""

    pairs: int
    """Different documents among the first ten of any retriever, over all queries."""
    queries: tuple[tuple[str, int], ...]
    """Those whose rankings have least in common, each with its number of documents: at most ten."""

    @property
    def time(self) -> str:
        """At twenty seconds a judgment: minutes below an hour."""
        minutes = self.pairs * SECONDS_PER_JUDGMENT / 60
        return (
            f"{minutes / 60:.1f} hours"
            if minutes >= 60
            else count_of(max(1, round(minutes)), "minute")
        )


def judging_effort(results: Results) -> JudgingEffort:
    """Count what people would judge, and name the queries on which the retrievers differ most."""
    pools: dict[str, set[str]] = {query: set() for query in results.queries}
    for read in rankings_by_retriever(results).values():
        for query, documents in read().items():
            pools[query].update(documents[:DEFAULT_CUTOFF])
    sizes = sorted(
        ((query, len(pool)) for query, pool in pools.items()),
        key=lambda one: (-one[1], one[0]),
    )
    return JudgingEffort(sum(size for _, size in sizes), tuple(sizes[:10]))


def pool_command(results: Results) -> str:
    """What to do with rankings that have no labels."""
    n = len(results.queries)
    sample = f" --sample {min(n, 60)}" if n > 60 else ""
    # A run writes its page before its folder is put in place.
    folder = results.folder.with_name(results.folder.name.removesuffix(".unfinished"))
    return f"harness pool {quote(folder.as_posix())} --depth 10{sample} --seed 1"
