"""Every measure there is, one row each; and from text to a Measure."""

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from harness.measures import formulas
from harness.measures.batch import Batch, Floats
from harness.measures.grades import Gain
from harness.measures.measure import OWN, Measure, Parameter
from retrievers.errors import InputError, Problem, collecting, did_you_mean
from retrievers.user_objects import NamedObject


class MeasureRow(NamedTuple):
    """All that the harness knows of one measure."""

    compute: Callable[[Batch, Measure], Floats]
    options: tuple[str, ...]
    """The parameters it takes; with `groups` it is computed by `group_value` instead."""
    meaning: str
    """What its values say, in words for the report."""
    cutoff: Literal["may", "must", "never"] = "may"
    bare: str = ""
    """The measure that is meant where the cutoff is left out."""
    binary: Literal["never", "at 1", "always"] = "never"
    """Where its values are 0 or 1 and nothing else: where only the first hit counts, or at any cutoff."""
    bounded: bool = True
    """Whether its values are between 0 and 1; else between 0 and its value for the ideal ranking."""
    beside: str = ""
    """A parameter that is True in a second measure, which is computed beside it wherever it is asked for."""
    by_largest_grade: bool = False
    """Whether every value depends on the largest grade of all judgments, which is then shown beside them."""


def needs_claims(batch: Batch, measure: Measure) -> Floats:
    """Refuse to measure by claims where there are only labels; with claims, `claim_value` computes it instead.

    Raises:
        InputError: always.
    """
    remedy = "measure it in an experiment whose queries have claims, with a [judge]"
    raise InputError(
        Problem(
            f"measure {str(measure)!r}", "needs the claims of reference answers", remedy
        )
    )


REL = ("rel",)
EITHER = ("groups", "rel")
RETURNED = "share of the returned documents that are relevant"
FOUND = "share of the relevant documents that were returned"

MEASURES: Mapping[str, MeasureRow] = {
    "P": MeasureRow(
        formulas.precision,
        EITHER,
        bare="SetP",
        binary="at 1",
        meaning="share of the first k hits that are relevant, also where fewer than k came back",
    ),
    "R": MeasureRow(
        formulas.recall,
        EITHER,
        bare="SetR",
        meaning="share of the relevant documents that are among the first k hits",
    ),
    "Rcap": MeasureRow(
        formulas.capped_recall,
        REL,
        cutoff="must",
        binary="at 1",
        meaning="hits among the first k, divided by the most that could be there",
    ),
    "F1": MeasureRow(
        formulas.f1,
        EITHER,
        bare="SetF",
        meaning="harmonic mean of the query's precision and recall",
    ),
    "Success": MeasureRow(
        formulas.success,
        REL,
        binary="always",
        meaning="1 where a relevant document is among the first k hits",
    ),
    "RR": MeasureRow(
        formulas.reciprocal_rank,
        EITHER,
        binary="at 1",
        meaning="1 divided by the rank of the first relevant hit; an ordinal number, its mean is to be "
        "read with care",
    ),
    "AP": MeasureRow(
        formulas.average_precision,
        EITHER,
        meaning="mean of the precision at each relevant document, those not found counting 0",
    ),
    "Rprec": MeasureRow(
        formulas.precision_at_r,
        REL,
        cutoff="never",
        meaning="precision at the rank that equals the number of relevant documents",
    ),
    "SetP": MeasureRow(formulas.set_precision, EITHER, binary="at 1", meaning=RETURNED),
    "SetR": MeasureRow(formulas.recall, EITHER, meaning=FOUND),
    "SetF": MeasureRow(
        formulas.set_f1,
        EITHER,
        meaning="harmonic mean of the set's precision and recall",
    ),
    "SetAP": MeasureRow(
        formulas.set_average_precision,
        REL,
        meaning="precision of the returned set times its recall",
    ),
    "CG": MeasureRow(
        formulas.cumulative_gain,
        ("dcg",),
        bounded=False,
        meaning="sum of the hits' gains",
    ),
    "DCG": MeasureRow(
        formulas.discounted_gain,
        ("dcg",),
        bounded=False,
        meaning="sum of the hits' gains, discounted by the logarithm of their rank",
    ),
    "nDCG": MeasureRow(
        formulas.normalised_gain,
        ("dcg", "groups", "ideal"),
        meaning="discounted gain of the hits, divided by that of the best possible order",
    ),
    "ERR": MeasureRow(
        formulas.expected_reciprocal_rank,
        (),
        by_largest_grade=True,
        meaning="expected reciprocal rank of the hit at which a reader stops",
    ),
    "RBP": MeasureRow(
        formulas.rank_biased_precision,
        ("p", "rel", "residual"),
        beside="residual",
        meaning="rank-biased precision: what a reader sees who goes on to the next hit with probability "
        "p",
    ),
    "Bpref": MeasureRow(
        formulas.binary_preference,
        REL,
        cutoff="never",
        meaning="how rarely a judged irrelevant document ranks above a relevant one",
    ),
    "Judged": MeasureRow(
        formulas.judged_share,
        (),
        binary="at 1",
        meaning="share of the returned documents that were judged at all",
    ),
    "Abstain": MeasureRow(
        formulas.abstain,
        (),
        cutoff="never",
        binary="always",
        meaning="1 where nothing was returned for a query that nothing answers",
    ),
    "ContextPrecision": MeasureRow(
        formulas.context_precision,
        ("by", "rel"),
        binary="at 1",
        meaning="mean of the precision at each hit, divided by the hits: finding more can "
        "lower it",
    ),
    "IDContextPrecision": MeasureRow(
        formulas.set_precision, REL, binary="at 1", meaning=RETURNED
    ),
    "IDContextRecall": MeasureRow(formulas.recall, REL, meaning=FOUND),
    "ClaimRecall": MeasureRow(
        needs_claims,
        (),
        meaning="share of the reference answer's claims that any of the first "
        "k documents supports",
    ),
    "ClaimPrecision": MeasureRow(
        needs_claims,
        (),
        binary="at 1",
        meaning="share of the first k documents that support any claim of the reference "
        "answer",
    ),
}
"""A new measure is one function, one row here, and its test."""


OWN_ROW = MeasureRow(needs_claims, ("high", "low"), "a function of the user's own")
"""Of every measure of one's own, which `own_value` computes."""


def row_named(name: str) -> MeasureRow:
    """The row of a measure's name."""
    return OWN_ROW if name.startswith(OWN) else MEASURES[name]


def row_of(measure: Measure) -> MeasureRow:
    """The row of a measure."""
    row = row_named(measure.name)
    return row._replace(compute=needs_claims) if measure.claimed else row


def is_binary(measure: Measure) -> bool:
    """Whether every value of a measure is 0 or 1.

    >>> is_binary(Measure("RR", 1)), is_binary(Measure("RR", 2)), is_binary(Measure("Success", 5))
    (True, False, True)
    """
    binary = row_of(measure).binary
    return binary == "always" or (
        binary == "at 1" and measure.cutoff == 1 and not measure.get("groups")
    )


ALIASES: Mapping[str, str] = {
    "map": "AP",
    "mrr": "RR",
    "precision": "P",
    "recall": "R",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
}
"""What people call a measure, in lower case and without underscores: read as ours."""

ELSEWHERE: Mapping[str, str] = {
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

SHAPE = re.compile(
    r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*(?:@\s*([0-9]{1,9}))?\s*", re.DOTALL
)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "dcg": ("log2", "exp-log2"),
    "ideal": ("judged", "retrieved", "retrieved-all"),
    "groups": ("autorag", "first"),
    "by": ("ids", "claims"),
}
NUMBERS: Mapping[str, tuple[tuple[type, ...], float, float, str]] = {
    "rel": ((int,), 0, 2**31, "a whole number from 1"),
    "p": ((float,), 0, 1, "a number between 0 and 1"),
    "residual": ((bool,), -1, 2, "True or False"),
}
"""Types of a parameter, and the numbers between which it is."""
DEFAULTS: Mapping[str, Parameter] = {
    "dcg": "log2",
    "ideal": "judged",
    "rel": 1,
    "residual": False,
    "by": "ids",
    "low": 0.0,
    "high": 1.0,
}
"""The values that are left out of a canonical name."""
PERSISTENCE = 0.8
"""The p of RBP; always part of the canonical name."""


def parse(
    text: str, *, gain: Gain | None = None, ideal: Ideal | None = None
) -> Measure:
    """Read a measure's name, in any case.

    `gain` and `ideal` are what an experiment declares under `[relevance]`: they fill in what the name leaves open,
    where the measure has that parameter.
    What people say is read as ours: "MAP", "MRR", "recall", "precision", "hit", "hit_rate". P, R and F1 without a
    cutoff are their set forms.

    Raises:
        InputError: there is no such measure or parameter, a value is out of range, or a cutoff is missing.

    >>> str(parse("ndcg@10"))
    'nDCG@10'
    >>> str(parse("nDCG@10", gain="exponential", ideal="retrieved"))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    >>> str(parse("map(REL=2)")), str(parse("recall@10")), str(parse("hit_rate@5"))
    ('AP(rel=2)', 'R@10', 'Success@5')
    """
    if (shape := SHAPE.fullmatch(text)) is None:
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
        params.setdefault("p", PERSISTENCE)
    kept = tuple(
        sorted(
            (key, value) for key, value in params.items() if DEFAULTS.get(key) != value
        )
    )
    function = text.value if isinstance(text, NamedObject) else None
    return _at(text, Measure(name, None, kept, function), shape[3])


def parse_all(
    texts: Iterable[str], *, gain: Gain | None = None, ideal: Ideal | None = None
) -> tuple[Measure, ...]:
    """Read several names: each measure once, with what its row puts beside it (the residual of RBP).

    Raises:
        InputError: as `parse`, with the problems of all names.

    >>> [str(m) for m in parse_all(["AP", "map", "RBP"])]
    ['AP', 'RBP(p=0.8)', 'RBP(p=0.8, residual=True)']
    """
    measures: dict[Measure, None] = {}
    problems: list[Problem] = []
    for text in texts:
        with collecting(problems):
            measure = parse(text, gain=gain, ideal=ideal)
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
    if written.startswith(OWN):
        return written
    if name := folded.get(ALIASES.get(word.replace("_", ""), word).lower()):
        return name
    bare = re.sub(r"(_at)?_?\d*$", "", word).replace("_", "")
    ours = ALIASES.get(bare) or ELSEWHERE.get(bare)
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
    if key in CHOICES:
        if isinstance(value, str) and value.lower() in CHOICES[key]:
            return value.lower()
        raise _refusal(
            text, f"{key} cannot be {value!r}", did_you_mean(str(value), CHOICES[key])
        )
    kinds, least, most, wanted = NUMBERS.get(
        key, ((int, float), -math.inf, math.inf, "a number")
    )
    if isinstance(value, int | float) and type(value) in kinds and least < value < most:
        return value if key in NUMBERS else float(value)
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
