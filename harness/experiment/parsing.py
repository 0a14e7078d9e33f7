"""Checks the tables of an experiment, key by key, and makes a frozen Experiment of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.experiment.blocks import KINDS, SWEPT, Block, Standalone
from harness.experiment.effects import code_of
from harness.experiment.environment import secrets, unset, walk
from harness.experiment.model import Experiment
from harness.experiment.option_tables import checked
from harness.experiment.retired import retired_in, tell_going
from harness.experiment.variants import swept, written_out
from retrievers import retriever_kinds
from retrievers.errors import InputError, Problem, did_you_mean

LARGEST, LARGEST_SEED = 2**31 - 1, 2**63 - 1
"""Whole numbers of an experiment, at most."""


def parse(written: Mapping[str, Any], *, code: bool = True, keys: bool = True) -> Experiment:
    """Check the tables of an experiment, `keys` in the environment among them; raises InputError with every problem."""
    for place, value in walk(written):
        key = place.rpartition(".")[2]
        tell_going(place, key, *([f"{key} = {value}"] if isinstance(value, str) else []))
    problems = [*secrets(written), *unset(written, keys=keys), *too_large(written)]
    tables = dict(written)
    judge = tables.get("judge")
    if not code and isinstance(judge, Mapping) and (runs := code_of({"encoder": judge.get("encoder")})):
        problems.append(_refused("judge", runs))
        tables["judge"] = {key: value for key, value in judge.items() if key != "encoder"}
    blocks: list[Block] = []
    entries = tables.get("retrievers", [])
    configurations: list[tuple[str, dict[str, Any]]] = []
    if "sweep" in tables:
        try:
            tables, configurations = swept(tables)
        except InputError as error:  # the rest of the file is checked all the same
            problems.extend(error.problems)
            tables = {key: value for key, value in tables.items() if key != "sweep"}
    given = list(written_out(entries if isinstance(entries, list) else ["no table"]))
    for place, entry in (*given, *configurations):
        try:
            if not code and (runs := code_of(entry)):
                raise InputError(_refused(place, runs))
            blocks.append(_block(entry, place))
        except InputError as error:
            problems.extend(error.problems)
            # Its name still counts: others may be made of it, and the rest of the file is checked all the same.
            name = entry.get("name") if isinstance(entry, Mapping) else None
            blocks += [Block(name=name)] if isinstance(name, str) and re.match(SWEPT, name) else []
    try:
        experiment = checked(Experiment, {**tables, "retrievers": blocks}, "")
    except InputError as error:  # that one is needed is no news where the only one is refused
        problems.extend(one for one in error.problems if blocks or not given or one.where != "retrievers")
    if problems:  # once, although several retrievers may be written out from one table
        raise InputError(list(dict.fromkeys(problems)))
    return experiment


def _refused(where: str, runs: str) -> Problem:
    return Problem(where, f"runs code: {runs}", "--no-code refuses it; look at that code, then run without the option")


def _block(entry: object, where: str) -> Block:
    if not isinstance(entry, Mapping):
        raise InputError(Problem("retrievers", "is no list of tables", "write each under [[retrievers]]"))
    kind = _kind_in(entry, where)
    return checked(KINDS.get(kind, Standalone), {**entry, "kind": kind}, where)


def _kind_in(entry: Mapping[str, Any], where: str) -> str:
    """The kind of a retriever, which must be known and not retired."""
    kind = entry.get("kind") or ("dense" if "encoder" in entry else "rerank" if "rerank" in entry else None)
    if problems := list(retired_in([(f"{where}.kind", kind)])):
        raise InputError(problems)
    if isinstance(kind, str) and kind in KINDS:
        return kind
    foreign = retriever_kinds()
    if not isinstance(kind, str) or kind not in foreign:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(Problem(where, what, did_you_mean(str(kind or ""), {*KINDS, *foreign})))
    return kind


def too_large(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the whole numbers that the libraries behind cannot hold; a seed may be longer."""
    for place, value in walk(written):
        if isinstance(value, int) and abs(value) > (LARGEST_SEED if place == "seed" else LARGEST):
            yield Problem(place, "is too large a number", f"at most {LARGEST:,}")
