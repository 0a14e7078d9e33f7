"""Reads and checks an experiment file, and expands `${NAME}` at the moment of use."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from harness import measures
from harness.dataset import DatasetReference
from harness.experiment.blocks import KINDS, NAME, Block, Standalone
from harness.experiment.guards import DEEPEST, REFERENCE, is_deeper, secrets, too_large, unset, walk
from harness.experiment.locating import dataset_table, locate, with_runs_found
from harness.experiment.model import Experiment, Question
from harness.experiment.options import Kind, checked, kind_of, options_of
from harness.experiment.variants import written_out
from harness.measures import Measure
from harness.stats.settings import Looks, Statistics
from retrievers import ENCODERS, RERANKERS, RETRIEVERS, encoder_class, reranker_class, retriever_class, retriever_kinds
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.ragged import Form
from retrievers.remote.redaction import Expanded
from retrievers.stores import StoreOptions

WITHOUT_INDEX = ("http", "python", "run")
"""Kinds that do not index the documents of the data set."""
LONGEST_NAME = 80
"""Characters of a measure's name that a message shows."""


class Loaded(NamedTuple):
    """An experiment, what was written for it, and where its data set lies."""

    question: Question
    written: Mapping[str, Any]
    path: Path
    dataset: DatasetReference

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.question.experiment


def load(source: str | Path | Mapping[str, Any] | Experiment, *, code: bool = True) -> Loaded:
    """Read and check an experiment.

    Args:
        source: an experiment file; or its tables, or an Experiment, built in code: paths are then seen from the
            working directory.
        code: whether it may name code that is run: a Python function, a kind of another package, a model's own code.

    Raises:
        InputError: with every problem that was found, each with its key.
    """
    built = isinstance(source, Mapping | Experiment)
    path = Path("experiment") if isinstance(source, Mapping | Experiment) else Path(source)
    tables = _tables(source) if isinstance(source, Mapping | Experiment) else _read(path)
    problems: list[Problem] = []
    question = None
    try:
        question = question_of(parse(with_runs_found(tables, path), code=code))
    except InputError as error:
        where = "" if built else f"{path}"
        problems += [p._replace(where=": ".join(filter(None, (where, p.where)))) for p in error.problems]
    dataset = None
    try:
        dataset = locate(dataset_table(tables), path)
    except InputError as error:
        problems += error.problems if question is not None or not problems else _absent(error)
    if question is None:
        problems += [p for p in _wrong_measures(tables, "" if built else f"{path}: ") if p not in problems]
    if problems or question is None or dataset is None:
        raise InputError(problems)
    return Loaded(question, tables, path, dataset)


def reference_in(path: Path) -> tuple[DatasetReference, bool]:
    """Find the data set of an experiment file that may be wrong elsewhere, and whether dangling labels are dropped.

    Raises:
        InputError: the file is no TOML, or its data set cannot be found.
    """
    tables = _read(path)
    relevance = tables.get("relevance")
    drops = isinstance(relevance, Mapping) and relevance.get("dangling") == "drop"
    return locate(dataset_table(tables), path), drops


def _wrong_measures(tables: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """The measures that cannot be read, told also where another key is wrong."""
    listed = tables.get("measures")
    for key, some in (("primary", [tables.get("primary")]), ("measures", listed if isinstance(listed, list) else [])):
        for text in (one for one in some if isinstance(one, str)):
            try:
                measures.parse_all([text])
            except InputError as error:
                yield from (Problem(f"{where}{key}: {text[:LONGEST_NAME]!r}", p.what, p.remedy) for p in error.problems)


def _read(path: Path) -> dict[str, Any]:
    """The tables of an experiment file."""
    try:
        tables = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
        if is_deeper(tables, DEEPEST):
            raise RecursionError
        return tables
    except OSError as error:
        remedy = "give the path of an experiment, a .toml file"
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}", remedy)) from None
    except UnicodeDecodeError:
        raise InputError(Problem(str(path), "is not UTF-8", "save the file as UTF-8")) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(Problem(str(path), f"is not TOML: {error}")) from None
    except RecursionError:
        raise InputError(
            Problem(str(path), "is nested too deep", "an experiment has tables in tables, no more")
        ) from None
    except ValueError:  # Python reads no integer of more than 4,300 digits
        raise InputError(Problem(str(path), "holds a number of thousands of digits", "write a smaller one")) from None


def _tables(source: Mapping[str, Any] | Experiment) -> dict[str, Any]:
    """The tables of an experiment built in code, as they would stand in a file."""
    tables: Any = _without_none(source.resolved() if isinstance(source, Experiment) else source)
    parsed: dict[str, Any] = tables
    return parsed


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value.as_posix() if isinstance(value, Path) else value


def _absent(error: InputError) -> list[Problem]:
    """Of the problems of the data set's table those that the whole file's check has not told."""
    return [problem for problem in error.problems if problem.what.endswith("does not exist")]


def question_of(experiment: Experiment) -> Question:
    """Parse the measures, and the primary one among them.

    Raises:
        InputError: one is unknown, looks deeper than `depth`, or the primary measure is not among them.
    """
    relevance, problems = experiment.relevance, list[Problem]()
    named: list[Measure] = []
    for where, text in [("primary", experiment.primary), *(("measures", text) for text in experiment.measures)]:
        try:
            parsed = measures.parse_all([text], gain=relevance.gain, ideal=relevance.ideal)
        except InputError as error:
            problems += [Problem(f"{where}: {text[:LONGEST_NAME]!r}", p.what, p.remedy) for p in error.problems]
            continue
        if where == "measures" and parsed[0] in named[1:]:
            problems.append(Problem(where, f"{text} stands twice", "name each measure once"))
        named += parsed[:1] if where == "primary" else parsed
        if where == "measures" and (parsed[0].cutoff or 0) > experiment.depth:
            problems.append(Problem(where, f"{text} looks below depth {experiment.depth}", "raise depth"))
    primary, others = (named[0], named[1:]) if named else (None, [])
    if not problems and primary not in others:
        known = ", ".join(experiment.measures)
        problems.append(Problem("primary", f"{experiment.primary} is not among the measures", f"they are {known}"))
    if experiment.judge is None and (claimed := [str(one) for one in others if one.claimed]):
        remedy = 'say who judges whether a text entails a claim: [judge] kind = "lexical"'
        problems.append(Problem("judge", f"is missing: {claimed[0]} needs verdicts on claims", remedy))
    if problems or primary is None:
        raise InputError(problems)
    return Question(experiment, tuple(dict.fromkeys(others)), primary)


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


def code_of(entry: object) -> str:
    """Say what code, not this program's own, a retriever's table makes run; "" where none. Nothing is imported.

    >>> code_of({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    if not isinstance(entry, Mapping):
        return ""
    kind = entry.get("kind")
    if kind == "python":
        return f"call = {entry.get('call')}"
    if isinstance(kind, str) and kind not in {*KINDS, *RETRIEVERS}:
        return f"kind = {kind}, of another package"
    for key, own in (("encoder", ENCODERS), ("rerank", RERANKERS)):
        table = entry.get(key)
        if isinstance(table, Mapping):
            if table.get("kind") not in (*own, None):
                return f"{key}.kind = {table.get('kind')}, of another package"
            if table.get("trust_remote_code"):
                return f"{key}.trust_remote_code"
    return ""


def expanded(value: Any) -> Any:
    """Replace every `${NAME}` by the environment's value: only at the moment of use, never to be written down.

    A text in which something was replaced remembers how it was written.
    """
    if isinstance(value, str):
        replaced = REFERENCE.sub(lambda name: os.environ[name[1]], value)
        return replaced if replaced == value else Expanded(replaced, value)
    if isinstance(value, Mapping):
        return {key: expanded(inner) for key, inner in value.items()}
    return type(value)(map(expanded, value)) if isinstance(value, list | tuple) else value


def statistics_of(table: Mapping[str, Any], where: str) -> Statistics:
    """Check `[statistics]`; raises InputError with every problem."""
    given = dict(table)
    if isinstance(given.get("looks"), Mapping):
        given["looks"] = Looks(**checked(options_of(Looks), given["looks"], f"{where}.looks").model_dump())
    known = checked(options_of(Statistics), given, where)
    try:
        return Statistics(**{name: getattr(known, name) for name in type(known).model_fields})
    except InputError as error:
        raise InputError([p._replace(where=f"{where}.{p.where.split()[-1]}") for p in error.problems]) from None


def unexpanded(text: str, written: Any) -> str:
    """Put `${NAME}` back into a text wherever it holds what a string of the experiment was replaced by.

    Args:
        text: a message, which may be shown and kept.
        written: the tables as they were written.
    """
    for _, _, value in walk(written, ""):
        replaced = str(expanded(value))
        if replaced != value and len(replaced) > 3:
            text = text.replace(replaced, value)
    return text


def _block(entry: object, where: str) -> Block:
    if not isinstance(entry, Mapping):
        raise InputError(Problem("retrievers", "is no list of tables", "write each under [[retrievers]]"))
    kind = entry.get("kind") or ("dense" if "encoder" in entry else "rerank" if "rerank" in entry else None)
    foreign = {} if kind in KINDS else retriever_kinds()
    if not isinstance(kind, str) or kind not in {*KINDS, *foreign}:
        what = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
        raise InputError(Problem(where, what, did_you_mean(str(kind or ""), {*KINDS, *foreign})))
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


def _with_options(table: Mapping[str, Any], cls: type, where: str) -> dict[str, Any]:
    """The table of a whole retriever, the options of its class checked and put aside under `options`."""
    own = {key: value for key, value in table.items() if key in {"name", "kind", "rerank", "color", "filter"}}
    if own.get("filter") and table["kind"] in WITHOUT_INDEX:
        remedy = "filter where its index is: in the body of the request, or in the function"
        raise InputError(Problem(f"{where}.filter", f"a retriever of kind {table['kind']!r} has its own index", remedy))
    others = {key: value for key, value in table.items() if key not in own}
    return {**own, "options": checked(options_of(cls), others, where).model_dump()}
