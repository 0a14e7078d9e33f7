"""Tables to an Experiment."""

import re
from collections.abc import Mapping
from typing import Any

from harness.experiment.experiment import Experiment
from harness.experiment.retriever_config import SWEPT_NAME, RetrieverConfig
from harness.experiment.retriever_schema import CONFIGS_BY_KIND, CustomConfig
from harness.experiment.table_values import (
    literal_secrets,
    oversized_numbers,
    unset_variables,
    walk_values,
)
from harness.experiment.variants import expand_variants
from harness.retired import retired_keys
from retrievers import (
    ENCODERS,
    RERANKERS,
    RETRIEVERS,
    STORES,
    retriever_kinds,
    store_kinds,
)
from retrievers.errors import InputError, Problem, collect_errors, did_you_mean
from retrievers.options.tables import validated


def parse_experiment(
    written: Mapping[str, Any], *, allow_code: bool = True
) -> Experiment:
    """Check the tables of an experiment and the variables that they name; raises InputError with every problem."""
    if gone := list(retired_keys(written)):
        raise InputError(gone)
    problems = [
        *literal_secrets(written),
        *unset_variables(written),
        *oversized_numbers(written),
    ]
    tables = dict(written)
    judge = tables.get("judge")
    if (
        not allow_code
        and isinstance(judge, Mapping)
        and (runs := user_code_in({"encoder": judge.get("encoder")}))
    ):
        problems.append(_refused("judge", runs))
        tables["judge"] = {
            key: value for key, value in judge.items() if key != "encoder"
        }
    made: list[RetrieverConfig] = []
    entries = tables.get("retrievers", [])
    configurations: list[tuple[str, dict[str, Any]]] = []
    if "sweep" in tables:
        from harness.experiment.expand_sweep import (
            expand_sweep,  # a wing: an experiment without a sweep needs none of it
        )

        sweep = tables.pop("sweep")
        with collect_errors(problems):  # the rest of the file is checked all the same
            tables, configurations = expand_sweep({**tables, "sweep": sweep})
    given = list(
        expand_variants(entries if isinstance(entries, list) else ["no table"])
    )
    for place, entry in (*given, *configurations):
        if "conversation" in tables and isinstance(entry, Mapping):
            entry = {"conversation": tables["conversation"], **entry}
        with collect_errors(problems):
            if not allow_code and (runs := user_code_in(entry)):
                raise InputError(_refused(place, runs))
            made.append(_block(entry, place))
            continue
        # Its name still counts: others may use it, and the rest of the file is checked all the same.
        name = entry.get("name") if isinstance(entry, Mapping) else None
        made += (
            [RetrieverConfig(name=name)]
            if isinstance(name, str) and re.fullmatch(SWEPT_NAME, name)
            else []
        )
    try:
        experiment = validated(Experiment, {**tables, "retrievers": made}, "")
    except (
        InputError
    ) as error:  # that one is needed is no news where the only one is refused
        problems.extend(
            one
            for one in error.problems
            if made or not given or one.where != "retrievers"
        )
    if problems:  # once, although several retrievers may be written out from one table
        raise InputError(list(dict.fromkeys(problems)))
    return experiment


def _refused(where: str, runs: str) -> Problem:
    return Problem(
        where,
        f"runs code: {runs}",
        "--no-code refuses it; look at that code, then run without the option",
    )


def _block(entry: object, where: str) -> RetrieverConfig:
    if not isinstance(entry, Mapping):
        raise InputError(
            Problem(
                "retrievers",
                "is not a list of tables",
                "write each under [[retrievers]]",
            )
        )
    kind = _kind_in(entry, where)
    if kind not in ("fusion", "rerank"):
        return validated(
            CONFIGS_BY_KIND.get(kind, CustomConfig), {**entry, "kind": kind}, where
        )
    of = entry.get("of")
    several = list(of) if isinstance(of, list | tuple) else [of]
    parts = [
        _block({"name": f"part-{number}", **part}, f"{where}.of[{number}]")
        if isinstance(part, Mapping)
        else part
        for number, part in enumerate(several)
    ]
    made = (
        {}
        if of is None
        else {"of": parts if isinstance(of, list | tuple) else parts[0]}
    )
    return validated(CONFIGS_BY_KIND[kind], {**entry, **made, "kind": kind}, where)


def _kind_in(entry: Mapping[str, Any], where: str) -> str:
    """The kind of a retriever, which must be known."""
    kind = entry.get("kind") or (
        "dense" if "encoder" in entry else "rerank" if "rerank" in entry else None
    )
    if isinstance(kind, str) and kind in CONFIGS_BY_KIND:
        return kind
    foreign = retriever_kinds()
    if not isinstance(kind, str) or kind not in foreign:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(
            Problem(
                where, what, did_you_mean(str(kind or ""), {*CONFIGS_BY_KIND, *foreign})
            )
        )
    return kind


KINDS_WITHOUT_CODE = {
    "": {*CONFIGS_BY_KIND, *RETRIEVERS},
    "of": {*CONFIGS_BY_KIND, *RETRIEVERS},
    "encoder": ENCODERS,
    "rerank": RERANKERS,
    "chunk": (),
}
"""Table within a retriever's, "" for its own -> the kinds of it that come with the harness."""


def user_code_in(entry: object) -> str:
    """Return which code a retriever's table makes run; "" for none. Nothing is imported.

    >>> user_code_in({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    for place, one in walk_values(entry):
        path = re.sub(r"\[\d+\]", "", place)
        name, before = path.rpartition(".")[2], f"{place}." if place else ""
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if isinstance(one, Mapping) and name in KINDS_WITHOUT_CODE:
            if kind == "python" or (name == "chunk" and one.get("call")):
                return f"{before}call = {one.get('call')}"
            if isinstance(kind, str) and kind not in KINDS_WITHOUT_CODE[name]:
                return f"{before}kind = {kind}, of another package"
            if one.get("trust_remote_code"):
                return f"{before}trust_remote_code"
        scheme = (
            one.partition("://")[0]
            if isinstance(one, str) and re.search(r"\bstore(\.location)?$", path)
            else ""
        )
        if scheme not in STORES and scheme in store_kinds():
            return f"store = {one}, of another package"
    return ""
