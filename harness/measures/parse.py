"""The name of a measure, parsed to its value."""

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from harness.measures.grade_rules import Gain
from harness.measures.measure import OWN_PREFIX, Measure, Parameter
from harness.measures.table import MEASURES, row_named, row_of
from retrievers.errors import InputError, Problem, collect_errors, did_you_mean
from retrievers.options.user_code import NamedObject

MEASURE_ALIASES: Mapping[str, str] = {
    "map": "AP",
    "mrr": "RR",
    "precision": "P",
    "recall": "R",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
}
"""What people call a measure, in lower case and without underscores: read as ours."""

OTHER_TOOLS_NAMES: Mapping[str, str] = {
    "f": "F1",
    "accuracy": "Success",
    "reciprank": "RR",
    "ndcgcut": "nDCG",
    "mapcut": "AP",
    "setp": "SetP",
    "setrecall": "SetR",
    "setf": "SetF",
    "setmap": "SetAP",
}
"""What other tools call a measure, in lower case: asked for by that name, ours is proposed. Without underscores."""


Ideal = Literal["judged", "retrieved", "retrieved-all"]

MEASURE_PATTERN = re.compile(
    r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*(?:@\s*([0-9]{1,9}))?\s*", re.DOTALL
)
PARAMETER_CHOICES: Mapping[str, tuple[str, ...]] = {
    "dcg": ("log2", "exp-log2"),
    "ideal": ("judged", "retrieved", "retrieved-all"),
    "groups": ("autorag", "first"),
    "by": ("ids", "claims"),
}
PARAMETER_LIMITS: Mapping[str, tuple[tuple[type, ...], float, float, str]] = {
    "rel": ((int,), 0, 2**31, "a whole number from 1"),
    "p": ((float,), 0, 1, "a number between 0 and 1"),
    "residual": ((bool,), -1, 2, "True or False"),
}
"""Types of a parameter, and the numbers between which it is."""
PARAMETER_DEFAULTS: Mapping[str, Parameter] = {
    "dcg": "log2",
    "ideal": "judged",
    "rel": 1,
    "residual": False,
    "by": "ids",
    "low": 0.0,
    "high": 1.0,
}
"""The values that are left out of a canonical name."""
RBP_PERSISTENCE = 0.8
"""The p of RBP; always part of the canonical name."""


def parse_measure(
    text: str, *, gain: Gain | None = None, ideal: Ideal | None = None
) -> Measure:
    """Read a measure's name, in any case.

    `gain` and `ideal` are what an experiment declares under `[relevance]`: they fill in what the name leaves open,
    where the measure has that parameter.
    What people say is read as ours: "MAP", "MRR", "recall", "precision", "hit", "hit_rate". P, R and F1 without a
    cutoff are their set forms.

    Raises:
        InputError: there is no such measure or parameter, a value is out of range, or a cutoff is missing.

    >>> str(parse_measure("ndcg@10"))
    'nDCG@10'
    >>> str(parse_measure("nDCG@10", gain="exponential", ideal="retrieved"))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    >>> str(parse_measure("map(REL=2)")), str(parse_measure("recall@10")), str(parse_measure("hit_rate@5"))
    ('AP(rel=2)', 'R@10', 'Success@5')
    """
    if (shape := MEASURE_PATTERN.fullmatch(text)) is None:
        raise _refusal(
            text, "this is not a measure", "a measure looks like nDCG@10 or P(rel=2)@5"
        )
    name = _name(text, shape[1])
    options = row_named(name).options
    params = {
        key: _value(text, key, value)
        for key, value in _arguments(text, name, shape[2] or "").items()
    }
    if alone := next(
        (key for key, value in params.items() if key == "groups" or value == "claims"),
        "",
    ):
        if len(params) > 1:
            written = f"{name}({alone}={params[alone]!r})"
            raise _refusal(
                text, f"{alone} goes with no other parameter", f"write {written}"
            )
        options = ()
    if gain is not None and "dcg" in options:
        params.setdefault("dcg", "exp-log2" if gain == "exponential" else "log2")
    if ideal is not None and "ideal" in options:
        params.setdefault("ideal", ideal)
    if "p" in options:
        params.setdefault("p", RBP_PERSISTENCE)
    kept = tuple(
        sorted(
            (key, value)
            for key, value in params.items()
            if PARAMETER_DEFAULTS.get(key) != value
        )
    )
    function = text.value if isinstance(text, NamedObject) else None
    return _at(text, Measure(name, None, kept, function), shape[3])


def parse_measure_list(
    texts: Iterable[str], *, gain: Gain | None = None, ideal: Ideal | None = None
) -> tuple[Measure, ...]:
    """Read several names: each measure once, with what its row puts beside it (the residual of RBP).

    Raises:
        InputError: as `parse`, with the problems of all names.

    >>> [str(m) for m in parse_measure_list(["AP", "map", "RBP"])]
    ['AP', 'RBP(p=0.8)', 'RBP(p=0.8, residual=True)']
    """
    measures: dict[Measure, None] = {}
    problems: list[Problem] = []
    for text in texts:
        with collect_errors(problems):
            measure = parse_measure(text, gain=gain, ideal=ideal)
            measures[measure] = None
            if beside := row_of(measure).beside:
                params = {**dict(measure.params), beside: True}
                measures[replace(measure, params=tuple(sorted(params.items())))] = None
    if problems:
        raise InputError(problems)
    return tuple(measures)


def _name(text: str, written: str) -> str:
    folded = {name.lower(): name for name in MEASURES}
    word = written.lower()
    if written.startswith(OWN_PREFIX):
        return written
    if name := folded.get(MEASURE_ALIASES.get(word.replace("_", ""), word).lower()):
        return name
    bare = re.sub(r"(_at)?_?\d*$", "", word).replace("_", "")
    ours = MEASURE_ALIASES.get(bare) or OTHER_TOOLS_NAMES.get(bare)
    remedy = f"here it is {ours!r}" if ours else did_you_mean(word, MEASURES)
    raise _refusal(text, f"there is no measure {written!r}", remedy)


def _arguments(text: str, name: str, inside: str) -> dict[str, object]:
    """The keyword arguments between the parentheses; only literals are read, nothing is evaluated."""
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        if (
            not isinstance(call, ast.Call)
            or call.args
            or not isinstance(call.func, ast.Name)
        ):
            raise ValueError
        given = {str(k.arg).lower(): ast.literal_eval(k.value) for k in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError) as error:
        remedy = "write parameters as name=value, each once, text in quotes"
        raise _refusal(text, f"cannot read ({inside})", remedy) from error
    known = row_named(name).options
    if unknown := next((key for key in given if key not in known), ""):
        remedy = did_you_mean(unknown, known) if known else "it takes none"
        raise _refusal(text, f"{name} has no parameter {unknown!r}", remedy)
    return given


def _value(text: str, key: str, value: object) -> Parameter:
    if key in PARAMETER_CHOICES:
        if isinstance(value, str) and value.lower() in PARAMETER_CHOICES[key]:
            return value.lower()
        raise _refusal(
            text,
            f"{key} cannot be {value!r}",
            did_you_mean(str(value), PARAMETER_CHOICES[key]),
        )
    kinds, least, most, wanted = PARAMETER_LIMITS.get(
        key, ((int, float), -math.inf, math.inf, "a number")
    )
    if isinstance(value, int | float) and type(value) in kinds and least < value < most:
        return value if key in PARAMETER_LIMITS else float(value)
    raise _refusal(text, f"{key} cannot be {value!r}", f"it is {wanted}")


def _at(text: str, measure: Measure, cutoff: str | None) -> Measure:
    row = row_of(measure)
    if cutoff is None:
        if row.cutoff == "must":
            raise _refusal(
                text, f"{measure.name} needs a cutoff", f"for example {measure}@10"
            )
        return replace(measure, name=row.bare or measure.name)
    if row.cutoff == "never":
        raise _refusal(text, f"{measure.name} takes no cutoff", f"write {measure}")
    if int(cutoff) < 1:
        raise _refusal(text, "a cutoff is at least 1", f"for example {measure}@10")
    return replace(measure, cutoff=int(cutoff))


def _refusal(text: str, what: str, remedy: str) -> InputError:
    return InputError(Problem(f"measure {text!r}", what, remedy))
