"""The name of a measure, parsed to its value."""

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

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
"""Usual names of measures, in lower case and without underscores: read as ours."""

OTHER_TOOLS_NAMES: Mapping[str, str] = {
    "f": "F1",
    "accuracy": "Success",
    "reciprank": "RR",
    "ndcgcut": "nDCG",
    "mapcut": "AP",
    "setrecall": "SetR",
    "setmap": "SetAP",
}
"""Names that other tools use, in lower case and without underscores.

They are not read; the message proposes our name.
"""


Ideal = Literal["judged", "retrieved", "retrieved-all"]
"""Which documents the ideal ranking of nDCG has."""

MEASURE_PATTERN = re.compile(
    r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*(?:@\s*([0-9]{1,9}))?\s*", re.DOTALL
)
"""NAME(parameters)@cutoff, such as nDCG(dcg='exp-log2')@10."""
PARAMETER_CHOICES: Mapping[str, tuple[str, ...]] = {
    "dcg": ("log2", "exp-log2"),
    "ideal": ("judged", "retrieved", "retrieved-all"),
    "groups": ("autorag", "first"),
    "by": ("ids", "claims"),
    "unit": ("documents", "chars"),
}


class ParameterLimits(NamedTuple):
    """The types of a parameter, and the numbers between which it is, ends excluded."""

    types: tuple[type, ...]
    above: float
    below: float
    description: str


PARAMETER_LIMITS: Mapping[str, ParameterLimits] = {
    "rel": ParameterLimits((int,), 0, 2**31, "a whole number from 1"),
    "tokens": ParameterLimits((int,), 0, 2**31, "a whole number from 1"),
    "p": ParameterLimits((float,), 0, 1, "a number between 0 and 1"),
    "residual": ParameterLimits((bool,), -1, 2, "True or False"),
}
FLOAT_LIMITS = ParameterLimits((int, float), -math.inf, math.inf, "a number")
"""Limits of all other parameters, whose numbers are read as floats."""
PARAMETER_DEFAULTS: Mapping[str, Parameter] = {
    "dcg": "log2",
    "ideal": "judged",
    "rel": 1,
    "residual": False,
    "by": "ids",
    "unit": "documents",
    "low": 0.0,
    "high": 1.0,
}
"""The values that are left out of a canonical name."""
RBP_PERSISTENCE = 0.8
"""The p of RBP; always part of the canonical name."""


def parse_measure(
    text: str, *, gain: Gain | None = None, ideal: Ideal | None = None
) -> Measure:
    """Return the measure with this name; one of ours is read in any case.

    `gain` and `ideal` are those that an experiment declares under `[relevance]`: they
    apply if the name does not say otherwise, and the measure has that parameter.
    Underscores do not count. Usual names are read as ours: "MAP", "MRR", "recall",
    "precision", "hit", "hit_rate". P, R and F1 without a cutoff are their set forms.

    Raises:
        InputError: there is no such measure or parameter, a value is out of range, the
            parameters exclude each other, or a cutoff is missing or not allowed.

    >>> str(parse_measure("ndcg@10"))
    'nDCG@10'
    >>> str(parse_measure("nDCG@10", gain="exponential", ideal="retrieved"))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    >>> [str(parse_measure(name)) for name in ("map(REL=2)", "recall@10", "hit_rate@5")]
    ['AP(rel=2)', 'R@10', 'Success@5']
    """
    match = MEASURE_PATTERN.fullmatch(text)
    if match is None:
        remedy = "a measure looks like nDCG@10 or P(rel=2)@5"
        raise _refusal(text, "this is not a measure", remedy)
    name = _measure_name(text, match[1])
    arguments = _parse_arguments(text, name, match[2] or "")
    params = {key: _parse_value(text, key, arguments[key]) for key in arguments}
    exclusive = _exclusive_parameter(params)
    if exclusive is None:
        has_own_ideal = "tokens" in params  # see `_with_tokens`
        defaults = _default_parameters(name, gain, None if has_own_ideal else ideal)
        params = {**defaults, **params}
    elif len(params) > 1:
        remedy = f"write {name}({exclusive}={params[exclusive]!r})"
        raise _refusal(text, f"{exclusive} goes with no other parameter", remedy)
    canonical = [
        (key, params[key])
        for key in sorted(params)
        if PARAMETER_DEFAULTS.get(key) != params[key]
    ]
    # A measure of the user may be a name that carries its function.
    function = text.value if isinstance(text, NamedObject) else None
    measure = Measure(name, None, tuple(canonical), function)
    return _with_cutoff(text, measure, match[3])


def _exclusive_parameter(params: Mapping[str, Parameter]) -> str | None:
    """Return the parameter that excludes all others; None without such a one."""
    for key, argument in params.items():
        if key == "groups" or argument == "claims":
            return key
    return None


def _default_parameters(
    name: str, gain: Gain | None, ideal: Ideal | None
) -> dict[str, Parameter]:
    """Return the parameters that apply if the name of the measure has none."""
    options = row_named(name).options
    defaults: dict[str, Parameter] = {}
    if gain is not None and "dcg" in options:
        defaults["dcg"] = "exp-log2" if gain == "exponential" else "log2"
    if ideal is not None and "ideal" in options:
        defaults["ideal"] = ideal
    if "p" in options:
        defaults["p"] = RBP_PERSISTENCE
    return defaults


def parse_measure_list(
    texts: Iterable[str], *, gain: Gain | None = None, ideal: Ideal | None = None
) -> tuple[Measure, ...]:
    """Return the measures with these names, each once.

    A measure is followed by its companion (the residual of RBP).

    Raises:
        InputError: as `parse_measure`, with the problems of all names.

    >>> [str(measure) for measure in parse_measure_list(["AP", "map", "RBP"])]
    ['AP', 'RBP(p=0.8)', 'RBP(p=0.8, residual=True)']
    """
    measures: dict[Measure, None] = {}
    problems: list[Problem] = []
    for text in texts:
        with collect_errors(problems):
            measure = parse_measure(text, gain=gain, ideal=ideal)
            measures[measure] = None
            companion = row_of(measure).companion
            if companion:
                params = {**dict(measure.params), companion: True}
                sorted_params = tuple(sorted(params.items()))
                measures[replace(measure, params=sorted_params)] = None
    if problems:
        raise InputError(problems)
    return tuple(measures)


def _measure_name(text: str, written_name: str) -> str:
    """Return our name of the measure that is written in any case, or by an alias."""
    if written_name.startswith(OWN_PREFIX):
        return written_name
    lower_name = written_name.lower()
    plain_name = lower_name.replace("_", "")
    our_names = {**{name.lower(): name for name in MEASURES}, **MEASURE_ALIASES}
    if plain_name in our_names:
        return our_names[plain_name]
    # Other tools write the cutoff into the name: recall_10, ndcg_at_10, map_cut_10.
    bare_name = re.sub(r"(_at)?_?\d*$", "", lower_name).replace("_", "")
    our_name = our_names.get(bare_name) or OTHER_TOOLS_NAMES.get(bare_name)
    remedy = did_you_mean(lower_name, MEASURES)
    if our_name:
        remedy = f"here it is {our_name!r}"
    raise _refusal(text, f"there is no measure {written_name!r}", remedy)


def _parse_arguments(text: str, name: str, inside: str) -> dict[str, object]:
    """Return the keyword arguments between the parentheses.

    Only literals are read, nothing is evaluated.
    """
    try:
        arguments = _literal_arguments(inside)
    except (
        SyntaxError,
        ValueError,
        TypeError,
        RecursionError,
        MemoryError,
    ) as error:
        remedy = "write parameters as name=value, each once, text in quotes"
        raise _refusal(text, f"cannot read ({inside})", remedy) from error
    options = row_named(name).options
    for key in arguments:
        if key not in options:
            remedy = did_you_mean(key, options) if options else "it takes none"
            raise _refusal(text, f"{name} has no parameter {key!r}", remedy)
    return arguments


def _literal_arguments(inside: str) -> dict[str, object]:
    """Return the keyword arguments of a call, their keys in lower case.

    Raises:
        SyntaxError: this is no Python.
        RecursionError, MemoryError: it is nested too deep.
        ValueError, TypeError: these are not keyword arguments with literals, each once.
    """
    call = ast.parse(f"f({inside})", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("not the arguments of a call")
    if call.args:
        raise ValueError("positional arguments")
    arguments = {
        str(keyword.arg).lower(): ast.literal_eval(keyword.value)
        for keyword in call.keywords
    }
    if len(arguments) < len(call.keywords):
        raise ValueError("a keyword is repeated")
    return arguments


def _parse_value(text: str, key: str, argument: object) -> Parameter:
    choices = PARAMETER_CHOICES.get(key)
    if choices is not None:
        if isinstance(argument, str) and argument.lower() in choices:
            return argument.lower()
        remedy = did_you_mean(str(argument), choices)
        raise _refusal(text, f"{key} cannot be {argument!r}", remedy)
    limits = PARAMETER_LIMITS.get(key, FLOAT_LIMITS)
    refusal = _refusal(
        text, f"{key} cannot be {argument!r}", f"it is {limits.description}"
    )
    if not isinstance(argument, int | float) or type(argument) not in limits.types:
        raise refusal
    if not limits.above < argument < limits.below:
        raise refusal
    return float(argument) if limits is FLOAT_LIMITS else argument


def _with_cutoff(text: str, measure: Measure, cutoff: str | None) -> Measure:
    """Return the measure with the cutoff in its name; without one, its set form."""
    if measure.tokens is not None:
        return _with_tokens(text, measure, cutoff)
    row = row_of(measure)
    example = f"for example {measure}@10"
    if cutoff is None:
        if measure.uses_spans:
            remedy = f"for example {measure}@5, or tokens=2000"
            raise _refusal(text, f"{measure.name} needs a cutoff or tokens", remedy)
        if row.cutoff == "must":
            raise _refusal(text, f"{measure.name} needs a cutoff", example)
        return replace(measure, name=row.without_cutoff or measure.name)
    if row.cutoff == "never":
        raise _refusal(text, f"{measure.name} takes no cutoff", f"write {measure}")
    if int(cutoff) < 1:
        raise _refusal(text, "a cutoff is at least 1", example)
    return replace(measure, cutoff=int(cutoff))


def _with_tokens(text: str, measure: Measure, cutoff: str | None) -> Measure:
    """Return a measure within tokens, which has neither a cutoff nor an own ideal."""
    if cutoff is not None:
        remedy = f"write {measure}, or a cutoff without tokens"
        raise _refusal(text, "tokens take the place of the cutoff", remedy)
    if measure.get("ideal"):
        remedy = "leave ideal out"
        raise _refusal(text, "tokens have one ideal: all labelled", remedy)
    return measure


def _refusal(text: str, problem: str, remedy: str) -> InputError:
    return InputError(Problem(f"measure {text!r}", problem, remedy))
