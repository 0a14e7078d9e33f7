"""Checks the tables of an experiment, key by key, and makes a frozen Experiment of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from harness.experiment.blocks import KINDS, NAME, Block, Standalone
from harness.experiment.expanding import expanded, unexpanded
from harness.experiment.guards import secrets, too_large, unset
from harness.experiment.model import Experiment
from harness.experiment.options import Kind, checked, kind_of, options_of
from harness.experiment.retired import retired_in
from harness.experiment.trust import code_of
from harness.experiment.variants import written_out
from harness.stats.settings import Looks, Statistics
from retrievers import encoder_class, reranker_class, retriever_class, retriever_kinds
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.ragged import Form
from retrievers.stores import StoreOptions
from retrievers.types import Retriever

RESERVED = {"name", "kind", "of", "encoder", "rerank", "store", "filter", "color", "options"}
"""What keys of retrievers mean everywhere: no option of a whole retriever has such a name."""


def parse(written: Mapping[str, Any], *, code: bool = True) -> Experiment:
    """Check the tables of an experiment; raises InputError with every problem."""
    problems = [*secrets(written), *unset(written), *too_large(written, "")]
    tables = dict(written)
    if isinstance(tables.get("dataset"), str):
        tables["dataset"] = {"path": tables["dataset"]}
    if isinstance(judge := tables.get("judge"), Mapping) and "encoder" in judge:
        try:
            if not code and (runs := code_of({"encoder": judge["encoder"]})):
                raise _refused("judge", runs)
            encoder = kind_of(judge["encoder"], partial(_encoder_class, "dense"), "judge.encoder")
            tables["judge"] = {**judge, "encoder": encoder}
        except InputError as error:
            problems.extend(error.problems)
            tables["judge"] = {key: value for key, value in judge.items() if key != "encoder"}
    blocks: list[Block] = []
    entries = tables.pop("retrievers", [])
    for place, entry in written_out(entries if isinstance(entries, list) else ["no table"]):
        try:
            if not code and (runs := code_of(entry)):
                raise _refused(place, runs)
            blocks.append(_block(entry, place))
        except InputError as error:
            problems.extend(error.problems)
            # Its name still counts: others may be made of it, and the rest of the file is checked all the same.
            name = entry.get("name") if isinstance(entry, Mapping) else None
            blocks += [Standalone(name=name, kind="unknown")] if isinstance(name, str) and re.match(NAME, name) else []
    if isinstance(tables.get("statistics"), Mapping):
        try:
            tables["statistics"] = statistics_of(tables["statistics"], "statistics")
        except InputError as error:
            problems.extend(error.problems)
            del tables["statistics"]
    try:
        tables["retrievers"] = blocks
        experiment = checked(Experiment, tables, "")
    except InputError as error:
        problems.extend(error.problems)
    if problems:  # once, although several retrievers may be written out from one table
        raise InputError(list(dict.fromkeys(problems)))
    return experiment


def _refused(where: str, runs: str) -> InputError:
    remedy = "--no-code refuses it; look at that code, then run without the option"
    return InputError(Problem(where, f"runs code: {runs}", remedy))


def statistics_of(table: Mapping[str, Any], where: str) -> Statistics:
    """Check `[statistics]`; raises InputError with every problem."""
    given = dict(table)
    if problems := list(retired_in((f"{where}.{key}", value) for key, value in given.items())):
        raise InputError(problems)
    if isinstance(given.get("looks"), Mapping):
        given["looks"] = Looks(**checked(options_of(Looks), given["looks"], f"{where}.looks").model_dump())
    known = checked(options_of(Statistics), given, where)
    try:
        return Statistics(**{name: getattr(known, name) for name in type(known).model_fields})
    except InputError as error:
        raise InputError([p._replace(where=f"{where}.{p.where.split()[-1]}") for p in error.problems]) from None


def _block(entry: object, where: str) -> Block:
    if not isinstance(entry, Mapping):
        raise InputError(Problem("retrievers", "is no list of tables", "write each under [[retrievers]]"))
    kind = _kind_in(entry, where)
    table = {**entry, "kind": kind}
    model = KINDS.get(kind, Standalone)
    if isinstance(table.get("store"), str):
        table["store"] = {"location": table["store"]}
    problems: list[Problem] = []
    if isinstance(table.get("store"), Mapping) and table["store"]:
        try:
            table["store"] = _store(table["store"], kind, f"{where}.store")
        except InputError as error:
            problems.extend(error.problems)
    for key, find in (("encoder", partial(_encoder_class, kind)), ("rerank", reranker_class)):
        if key in table and key in model.model_fields:
            try:
                table[key] = kind_of(table[key], find, f"{where}.{key}")
            except InputError as error:
                problems.extend(error.problems)
                table[key] = Kind(kind="unknown", options={})
    try:
        if model is Standalone:
            table = _with_options(table, retriever_class(kind), where)
        block = checked(model, table, where)
    except InputError as error:
        problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return block


def _kind_in(entry: Mapping[str, Any], where: str) -> str:
    """The kind of a retriever, which must be known and not retired."""
    kind = entry.get("kind") or ("dense" if "encoder" in entry else "rerank" if "rerank" in entry else None)
    if problems := list(retired_in([(f"{where}.kind", kind)])):
        raise InputError(problems)
    foreign = {} if kind in KINDS else retriever_kinds()
    if not isinstance(kind, str) or kind not in {*KINDS, *foreign}:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(Problem(where, what, did_you_mean(str(kind or ""), {*KINDS, *foreign})))
    return kind


def _store(table: Mapping[str, Any], kind: str, where: str) -> dict[str, Any]:
    """The options of a store, which have to suit the form of its vectors."""
    options: dict[str, Any] = checked(options_of(StoreOptions), table, where).model_dump()
    try:
        # As it will be used; as it stands where a variable is not set, which is said elsewhere.
        store = StoreOptions(**(options if any(unset(options)) else expanded(options)))
        if kind in get_args(Form):
            store.check(kind)
    except InputError as error:
        raise InputError([p._replace(what=unexpanded(p.what, options)) for p in error.problems]) from None
    return options


def _encoder_class(form: str, kind: str) -> type:
    """The class of an encoder, which gives vectors of the form that is wanted in its place."""
    cls: type = encoder_class(kind)
    given = getattr(cls, "form", form)
    if given != form:
        remedy = f'it stands in a retriever of kind = "{given}"'
        raise InputError(Problem("kind", f"the encoder {kind!r} gives {given} vectors, not {form} ones", remedy))
    return cls


def _with_options(table: Mapping[str, Any], cls: type[Retriever], where: str) -> dict[str, Any]:
    """The table of a whole retriever, the options of its class checked and put aside under `options`."""
    own = {key: value for key, value in table.items() if key in {"name", "kind", "rerank", "color", "filter"}}
    if own.get("filter") and cls.own_index:
        remedy = "filter where its index is: in the body of the request, or in the function"
        raise InputError(Problem(f"{where}.filter", f"a retriever of kind {table['kind']!r} has its own index", remedy))
    others = {key: value for key, value in table.items() if key not in own}
    options = options_of(cls)
    if taken := sorted(RESERVED & options.model_fields.keys()):
        what = f"{cls.__name__} has an option {taken[0]!r}, which is a word of every experiment"
        raise InputError(Problem(f"{where}.kind", what, "its package has to call it otherwise"))
    return {**own, "options": checked(options, others, where).model_dump()}
