"""Whether a manifest agrees with itself: names that lead nowhere else, retrievers that fit, measures that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.experiment import NAME, Relevance, statistics_of
from harness.experiment.option_tables import checked
from harness.measures import parse
from harness.records.manifest import Manifest, ResolvedExperiment
from retrievers.errors import InputError

INDEXED = ("points", "indexed_points", "indexing_threshold_kb", "full_scan_threshold_kb")
"""What an engine says of an approximate collection."""
WHOLE = ("dimensions", "vectors", *INDEXED)
MEASURED = ("dimensions", "vector_bytes")
UNITS = ("tokens", "nonzeros")
SIZES = (*WHOLE, "vector_bytes", *(f"{unit}_per_{of}" for unit in UNITS for of in ("text", "query")))
"""What is kept of the size of vectors, as texts that are numbers."""
PRICES = tuple(f"{of}usd_per_{per}" for of in ("", "reranker ") for per in ("million_tokens", "thousand_searches"))
NUMBER = r"\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,2})?"


def manifest_faults(manifest: Manifest) -> Iterator[str]:
    """Yield what a manifest says that no run can have written: names that lead elsewhere, parts that do not fit."""
    resolved = manifest.resolved
    blocks = [block.get("name") for block in resolved.retrievers]
    for name in (manifest.name, *manifest.retrievers, *blocks, *manifest.waiting):
        if not isinstance(name, str) or not re.fullmatch(NAME, name) or name.endswith("\n"):
            yield f"{name!r} is no name"
            return
    if set(blocks) != set(manifest.retrievers) or len(set(blocks)) < len(blocks):
        yield "retrievers: they are not those of the experiment"
        return
    if absent := manifest.retrievers.keys() - manifest.ledger.retrievers.keys():
        yield f"ledger: lacks {', '.join(sorted(absent))}"
    if strange := manifest.ties.keys() - manifest.retrievers.keys():
        yield f"ties: {', '.join(sorted(strange))} is no retriever"
    if manifest.dataset.documents < 0 or manifest.dataset.queries < 0 or manifest.dataset.judged < 0:
        yield "dataset: counts are below 0"
    if manifest.judge and not re.fullmatch(r"all|\d{1,9}", manifest.judge.get("depth", ""), re.ASCII):
        yield "judge: depth is neither all nor a number"
    if not 0 <= manifest.seconds < float("inf"):
        yield f"seconds: {manifest.seconds} is no duration"
    for key in ("cores", "load"):
        if not isinstance(manifest.machine.get(key), int | float | None):
            yield f"machine: {key} is no number"
    yield from _graph_faults(resolved)
    yield from _experiment_faults(resolved)
    yield from _number_faults(manifest)
    yield from (
        f"{place}: is null, which no experiment file can say" for place in _nulls(manifest.experiment, "experiment")
    )


def _graph_faults(resolved: ResolvedExperiment) -> Iterator[str]:
    """Retrievers that are made of each other in a circle, or of what is not there."""
    waiting = {}
    for name, block in resolved.blocks.items():
        if not isinstance(block.get("kind"), str):
            yield f"resolved.retrievers: {name} has no kind"
            return
        of = block.get("of") or ()
        made_of = (of,) if isinstance(of, str) else of
        if not isinstance(made_of, list | tuple) or not all(isinstance(one, str) for one in made_of):
            yield f"resolved.retrievers: {name} is made of {of!r}"
            return
        waiting[name] = set(made_of)
        for key in ("encoder", "rerank", "store"):
            if not isinstance(block.get(key) or {}, Mapping):
                yield f"resolved.retrievers: {key} of {name} is no table"
            elif key != "store" and block.get(key) and not isinstance(block[key].get("kind"), str):
                yield f"resolved.retrievers: {key} of {name} has no kind"
    while ready := {name for name, of in waiting.items() if not of & waiting.keys()}:
        if unknown := set().union(*(waiting[name] for name in ready)) - resolved.blocks.keys():
            yield f"resolved.retrievers: made of unknown {', '.join(sorted(unknown))}"
            return
        waiting = {name: of for name, of in waiting.items() if name not in ready}
    if waiting:
        yield f"resolved.retrievers: made of each other in a circle: {', '.join(waiting)}"


def _number_faults(manifest: Manifest) -> Iterator[str]:
    """What is written of a retriever as a text and read as a number, and is none."""
    for name, facts in manifest.retrievers.items():
        stated = facts.provenance
        # What a retriever or a reranker from outside says of itself may have any form; sizes are always ours.
        sizes = SIZES if manifest.resolved.blocks[name].get("encoder") else ()
        wrong = [key for key in sizes if key in stated and not re.fullmatch(NUMBER, stated[key], re.ASCII)]
        wrong += [key for key in WHOLE if key in sizes and key in stated and not stated[key].isdecimal()]
        wrong += [key for key in PRICES if stated.get(key, "").startswith("-")]
        for key in dict.fromkeys(wrong):
            yield f"retrievers: {key} of {name} is no number of 0 or more"
        for unit in UNITS:
            if sizes and f"{unit}_per_text" in stated and (lacking := {f"{unit}_per_query", *MEASURED} - stated.keys()):
                yield f"retrievers: {name} lacks {', '.join(sorted(lacking))}"


def _nulls(value: object, place: str) -> Iterator[str]:
    """The places of what TOML has no word for."""
    if value is None:
        yield place
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _nulls(inner, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _nulls(inner, f"{place}[{number}]")


def _experiment_faults(resolved: ResolvedExperiment) -> Iterator[str]:
    """Tables and measures of an experiment that would have been refused."""
    for check in (
        lambda: checked(Relevance, resolved.relevance, "resolved.relevance"),
        lambda: statistics_of(resolved.statistics, "resolved.statistics"),
    ):
        try:
            check()
        except InputError as error:
            yield from (str(problem) for problem in error.problems)
    for name in (resolved.primary, *resolved.measures):
        try:
            parse(name)
        except InputError as error:
            yield from (f"resolved.measures: {problem}" for problem in error.problems)
    if missing := {"gain", "ideal"} - resolved.relevance.keys():
        yield f"resolved.relevance: lacks {', '.join(sorted(missing))}"
    if not resolved.measures:
        yield "resolved.measures: there is none"
    if resolved.depth < 1:
        yield f"resolved.depth: {resolved.depth} is below 1"
