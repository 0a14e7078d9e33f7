"""Tables to an Experiment.

A sweep and variants are written out first, so that every retriever has a table of its
own; each is checked by the class of its kind, then the whole by `Experiment`. Problems
are collected on the way. Code that is not allowed is found before it is imported.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from harness.experiment.experiment import Experiment
from harness.experiment.raw_table import RawTable, RetrieverEntry
from harness.experiment.retriever_config import SWEPT_NAME, RetrieverConfig
from harness.experiment.retriever_schema import CONFIGS_BY_KIND, CustomConfig
from harness.experiment.table_values import (
    literal_secrets,
    oversized_numbers,
    unset_variables,
    walk_values,
)
from harness.experiment.variants import UNSHARED_KEYS, expand_variants
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
from retrievers.remedy import Option, compose_remedy

KINDS_WITH_INNER_TABLES = ("fusion", "rerank")
"""Kinds of retrievers whose `of` may have tables of retrievers, not names alone."""
PROBLEMS_OF_PARTS = {
    **dict.fromkeys(
        UNSHARED_KEYS, "makes further retrievers, and this part has no name"
    ),
    **dict.fromkeys(
        ("floor", "conversation"), "has no effect on a part without a name"
    ),
}
"""Key -> why a table in the `of` of a retriever cannot have it."""
KINDS_WITHOUT_CODE = {
    "": {*CONFIGS_BY_KIND, *RETRIEVERS},
    "of": {*CONFIGS_BY_KIND, *RETRIEVERS},
    "encoder": ENCODERS,
    "rerank": RERANKERS,
    "chunk": (),
}
"""Key of a table in a retriever's table -> the kinds that come with the harness.

The key is empty for the retriever's table itself.
"""


def parse_experiment(
    raw_tables: Mapping[str, Any], *, allow_code: bool = True
) -> Experiment:
    """Check the tables of an experiment, and the variables that they name.

    Raises:
        InputError: with the problems of all tables; if there are none, with the first
            name that does not fit the others.
    """
    problems = _value_problems(raw_tables)
    tables = RawTable(raw_tables)
    if not allow_code:
        tables = _without_judge_code(tables, problems)
    configurations: list[RetrieverEntry] = []
    if "sweep" in tables:
        # Imported here, since most experiments have no sweep.
        from harness.experiment.expand_sweep import expand_sweep

        with_sweep = tables
        tables = tables.without("sweep")
        with collect_errors(problems):  # the other tables are checked all the same
            read_table = partial(_read_retriever, allow_code=allow_code)
            tables, configurations = expand_sweep(with_sweep, read_table)
    retriever_tables = tables.get("retrievers") if "retrievers" in tables else []
    if not isinstance(retriever_tables, list):
        retriever_tables = ["no table"]  # an entry whose problem says so
    listed = list(expand_variants(retriever_tables))
    configs = _parse_retrievers(
        [*listed, *configurations],
        problems,
        conversation=tables.get("conversation"),
        allow_code=allow_code,
    )
    checked = tables.with_options(retrievers=configs)
    try:
        experiment = validated(Experiment, checked.options, "")
    except InputError as error:
        # If each retriever has an error, that one is needed is no news.
        have_errors = bool(listed) and not configs
        problems.extend(
            problem
            for problem in error.problems
            if not have_errors or problem.where != "retrievers"
        )
    if problems:
        # Several retrievers may be from one table: each problem is reported once.
        raise InputError(list(dict.fromkeys(problems)))
    return experiment


def _value_problems(tables: object) -> list[Problem]:
    """Return the problems of single values, whatever their keys are."""
    return [
        *literal_secrets(tables),
        *unset_variables(tables),
        *oversized_numbers(tables),
    ]


def _without_judge_code(tables: RawTable, problems: list[Problem]) -> RawTable:
    """Return tables without the judge's encoder if it runs code, which is a problem."""
    judge = tables.table("judge")
    if judge is None:
        return tables
    code = user_code_in({"encoder": judge.get("encoder")})
    if not code:
        return tables
    problems.append(_refused_code("judge", code))
    return tables.with_options(judge=judge.without("encoder").options)


def _parse_retrievers(
    entries: Sequence[RetrieverEntry],
    problems: list[Problem],
    *,
    conversation: Any,
    allow_code: bool,
) -> list[RetrieverConfig]:
    """Check the tables of retrievers; their problems are added.

    A retriever with an error still counts by its name, since others may use it.
    """
    configs: list[RetrieverConfig] = []
    for entry in entries:
        table = entry.table
        if table and conversation is not None:
            table = table.with_defaults(conversation=conversation)
        with collect_errors(problems):
            if table is None:
                problem = "is not a list of tables"
                remedy = "write each under [[retrievers]]"
                raise InputError(Problem("retrievers", problem, remedy))
            code = "" if allow_code else user_code_in(table.options)
            if code:
                raise InputError(_refused_code(entry.where, code))
            configs.append(_parse_retriever(table, entry.where))
            continue
        # Here it has an error, which is collected.
        if re.fullmatch(SWEPT_NAME, entry.name):
            configs.append(RetrieverConfig(name=entry.name))
    return configs


def _read_retriever(table: RawTable, *, allow_code: bool) -> RetrieverConfig | None:
    """Return the retriever of a table; None if it has an error, or refused code."""
    if not allow_code and user_code_in(table.options):
        return None
    try:
        return _parse_retriever(table, "")
    except InputError:
        return None


def _refused_code(where: str, code: str) -> Problem:
    remedy = compose_remedy(
        "no code is allowed",
        Option("--no-code"),
        "; look at that code, then allow it",
    )
    return Problem(where, f"runs code: {code}", remedy)


def _parse_retriever(table: RawTable, where: str) -> RetrieverConfig:
    """Check the table of a retriever, and those in its `of`; InputError on errors."""
    kind = _kind_of(table, where)
    config_class = CONFIGS_BY_KIND.get(kind, CustomConfig)
    table = table.with_options(kind=kind)
    of = table.get("of")
    if kind in KINDS_WITH_INNER_TABLES and of is not None:
        if isinstance(of, list | tuple):
            parts = [_parse_part(part, number, where) for number, part in enumerate(of)]
            table = table.with_options(of=parts)
        else:
            table = table.with_options(of=_parse_part(of, 0, where))
    return validated(config_class, table.options, where)


def _parse_part(part: object, number: int, where: str) -> object:
    """Return a retriever in the `of` of another: a name, or a table that is checked."""
    table = RawTable.read(part)
    if table is None:
        return part
    for key, problem in PROBLEMS_OF_PARTS.items():
        if table.get(key) not in (None, {}):
            remedy = "write the part under [[retrievers]], and its name in of"
            raise InputError(Problem(f"{where}.of[{number}].{key}", problem, remedy))
    table = table.with_defaults(name=f"part-{number}")
    return _parse_retriever(table, f"{where}.of[{number}]")


def _kind_of(table: RawTable, where: str) -> str:
    """Return the kind of a retriever.

    Raises:
        InputError: it has none, or no retriever has this kind.
    """
    kind = table.get("kind")
    if not kind and "encoder" in table:
        kind = "dense"
    elif not kind and "rerank" in table:
        kind = "rerank"
    if isinstance(kind, str) and kind in CONFIGS_BY_KIND:
        return kind
    custom_kinds = retriever_kinds()
    if isinstance(kind, str) and kind in custom_kinds:
        return kind
    problem = f"unknown kind {kind!r}" if kind else "has neither an encoder nor a kind"
    remedy = did_you_mean(str(kind or ""), {*CONFIGS_BY_KIND, *custom_kinds})
    raise InputError(Problem(where, problem, remedy))


def user_code_in(table: object) -> str:
    """Return the first code that a retriever's table runs; empty if none.

    Nothing is imported.

    >>> user_code_in({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    for key_path, value in walk_values(table):
        plain_path = re.sub(r"\[\d+\]", "", key_path)
        if isinstance(value, Mapping):
            code = _code_of_part(value, key=plain_path.rpartition(".")[2])
            if code:
                return f"{key_path}.{code}" if key_path else code
        is_store = re.search(r"\bstore(\.location)?$", plain_path)
        if isinstance(value, str) and is_store:
            scheme = value.partition("://")[0]
            if scheme not in STORES and scheme in store_kinds():
                return f"store = {value}, of another package"
    return ""


def _code_of_part(part: Mapping[Any, Any], key: str) -> str:
    """Return the code that a part of a retriever runs; empty if none.

    Args:
        part: the table of the part.
        key: of the part in the table of the retriever.
    """
    if key not in KINDS_WITHOUT_CODE:
        return ""
    kind = part.get("kind")
    if kind == "python" or (key == "chunk" and part.get("call")):
        return f"call = {part.get('call')}"
    if isinstance(kind, str) and kind not in KINDS_WITHOUT_CODE[key]:
        return f"kind = {kind}, of another package"
    if kind == "mcp" and part.get("command"):
        return f"command = {list(part['command'])}"
    if part.get("trust_remote_code"):
        return "trust_remote_code"
    return ""
