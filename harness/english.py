"""English for numbers."""

import os
from collections.abc import Sequence
from typing import NamedTuple

MAX_SHORT_NAME = 16
"""Characters of the longest name up to which no prefix is set once for all."""
MAX_SHORT_PREFIX = 5
"""Characters of a prefix up to which it is not set once for all."""
WORD_MARKS = "-_/.: "
"""Characters between the words of a name."""
MINUS_SIGN = "\N{MINUS SIGN}"
SUPERSCRIPT_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def p_text(p: float) -> str:
    """Return a p-value for people: three digits, and a bound below 1e-12.

    Below it approximations are a few percent off. Terminal, pages and files agree in
    this form.

    >>> p_text(0.046875), p_text(1.5e-9), p_text(3e-308)
    ('0.0469', '1.50×10⁻⁹', '< 10⁻¹²')
    """
    digits, power = p_digits(p)
    if not power:
        return digits
    factor = "< " if digits == "<" else f"{digits}×"
    return f"{factor}10{str(power).translate(SUPERSCRIPT_DIGITS)}"


class PDigits(NamedTuple):
    """A p-value with three digits."""

    digits: str
    """The digits; "<" if only a bound is given."""
    power: int
    """The power of ten; 0 if none is written."""


def p_digits(p: float) -> PDigits:
    """Return a p-value's three digits and its power of ten.

    >>> p_digits(1.5e-9)
    PDigits(digits='1.50', power=-9)
    """
    if p < 1e-12:
        return PDigits("<", -12)
    digits, _, power = f"{p:#.3g}".partition("e")
    return PDigits(digits, int(power or 0))


def with_minus_sign(numbers: str) -> str:
    """Return numbers with the minus sign that sentences have.

    Every hyphen becomes one: the text must have no name.

    >>> with_minus_sign("-0.5 to +0.2")
    '\N{MINUS SIGN}0.5 to +0.2'
    """
    return numbers.replace("-", MINUS_SIGN)


def p_relation(p: str) -> str:
    """Return a p-value as it follows its name: equal, or below a bound.

    >>> p_relation(p_text(0.5)), p_relation(p_text(0.0))
    ('= 0.500', '< 10⁻¹²')
    """
    return p if p.startswith("<") else f"= {p}"


def count_queries(queries: int) -> str:
    """Return a number of queries in words.

    >>> count_queries(1), count_queries(1300)
    ('1 query', '1,300 queries')
    """
    return count_of(queries, "query")


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, which ends in y or takes an s.

    >>> count_of(1, "query"), count_of(1400, "labelled query"), count_of(0, "document")
    ('1 query', '1,400 labelled queries', '0 documents')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def count_pairs(pairs: int) -> str:
    """Return a number of pairs to judge: a document counts for each of its queries.

    >>> count_pairs(1), count_pairs(1300)
    ('1 query-document pair', '1,300 query-document pairs')
    """
    return count_of(pairs, "query-document pair")


def count_units(queries: int, clusters: int | None) -> str:
    """Return a number of queries, and of clusters if several queries ask the same.

    >>> count_units(150, None), count_units(150, 30)
    ('150 queries', '150 queries (30 clusters)')
    """
    if clusters is None:
        return count_queries(queries)
    return f"{count_queries(queries)} ({count_of(clusters, 'cluster')})"


def possessive(name: str) -> str:
    """Return the possessive of a name.

    >>> possessive("bm25"), possessive("ours")
    ("bm25's", "ours'")
    """
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def join_names(names: Sequence[str]) -> str:
    """Return names, one at least, as a list in a sentence.

    >>> join_names(["a"]), join_names(["a", "b"]), join_names(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def names_or_count(names: Sequence[str], limit: int = 4) -> str:
    """Return up to so many names; of more, one less and how many are left.

    The limit is two or more.

    >>> names_or_count(["a", "b"]), names_or_count(list("abcde"))
    ('a and b', 'a, b, c and 2 others')
    >>> names_or_count(list("abc"), 2)
    'a and 2 others'
    """
    if len(names) <= limit:
        return join_names(names)
    listed = names[: limit - 1]
    return f"{', '.join(listed)} and {len(names) - len(listed)} others"


def first_names(names: Sequence[str], limit: int = 5) -> str:
    """Return up to so many names of a list, and a mark if there are more.

    >>> first_names(["a", "b"]), first_names(list("abcdef"))
    ('a, b', 'a, b, c, d, e, …')
    """
    listed = list(names[:limit])
    if len(names) > limit:
        listed.append("…")
    return ", ".join(listed)


def common_prefix(names: Sequence[str]) -> str:
    """Return what three or more names begin with, up to a mark between words.

    "" if that saves little.

    >>> common_prefix(["bge-m3-dense-of-all", "bge-m3-sparse", "bge-m3-colbert"])
    'bge-m3-'
    >>> common_prefix(["ab", "ac"])
    ''
    """
    if len(names) <= 2 or max(len(name) for name in names) <= MAX_SHORT_NAME:
        return ""
    # Character by character is what is meant.
    common = os.path.commonprefix(list(names))  # noqa: RUF071
    end = max(common.rfind(mark) for mark in WORD_MARKS) + 1
    return common[:end] if end > MAX_SHORT_PREFIX else ""


def percent_text(share: float, digits: int = 3) -> str:
    """Return a share in percent with significant digits; only 1 is 100.

    >>> percent_text(0.95), percent_text(0.99996), percent_text(0.076, digits=2)
    ('95', '99.996', '7.6')
    >>> percent_text(1.0, digits=2)
    '100'
    """
    if share == 1:
        return "100"
    text = f"{100 * share:.{digits}g}"
    while share < 1 and float(text) >= 100:
        digits += 1
        text = f"{100 * share:.{digits}g}"
    return text


def short_p_text(p: float | None) -> str:
    """Return a p-value for a narrow column: three decimals, or that it is below them.

    >>> short_p_text(0.0104), short_p_text(2e-9), short_p_text(1.0), short_p_text(None)
    ('.010', '<.001', '1.00', '')
    """
    if p is None:
        return ""
    if p < 0.001:
        return "<.001"
    if p >= 0.9995:  # which three decimals would round to 1.000
        return "1.00"
    return f"{p:.3f}".removeprefix("0")


def shared_word_count(without: int, queries: int) -> str:
    """Say how many queries have no word of a document.

    >>> shared_word_count(3, 40), shared_word_count(1, 1)
    ('3 of 40 queries share no word with the corpus', '1 of 1 query shares no word \
with the corpus')
    """
    verb = "shares" if without == 1 else "share"
    return f"{without:,} of {count_of(queries, 'query')} {verb} no word with the corpus"


def unconverted_count(files: Sequence[str]) -> str:
    """Say that files could not be converted, and what that means.

    >>> print(unconverted_count(["a.docx"]))
    1 file could not be converted and is no document: a.docx
    """
    verb = "is no document" if len(files) == 1 else "are no documents"
    count = count_of(len(files), "file")
    return f"{count} could not be converted and {verb}: {first_names(files)}"


def tied_run_count(tied: int, queries: int) -> str:
    """Say how many queries have one score for all hits; empty if none has.

    >>> tied_run_count(2, 2), tied_run_count(1, 1)
    ('2 of 2 queries tie throughout; their ranks were not used', '1 of 1 query ties \
throughout; its ranks were not used')
    """
    if not tied:
        return ""
    ending = "tie throughout; their ranks were not used"
    if tied == 1:
        ending = "ties throughout; its ranks were not used"
    return f"{tied:,} of {count_of(queries, 'query')} {ending}"


def rising_run_count(rising: int, queries: int) -> str:
    """Say in how many queries scores rise with rank; empty if in none.

    >>> rising_run_count(40, 40)
    'scores rise with rank in 40 of 40 queries: are they distances?'
    """
    if not rising:
        return ""
    counts = f"{rising:,} of {count_of(queries, 'query')}"
    return f"scores rise with rank in {counts}: are they distances?"
