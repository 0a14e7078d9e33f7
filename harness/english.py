"""Numbers, nouns and lists as English text: what every message, table and page has in common."""

from __future__ import annotations

from collections.abc import Sequence


def format_p(p: float, least: float | None = None) -> str:
    """Return a p-value for people: three digits, never 0, and a bound where draws cannot say more.

    The terminal shows it as it is; the page and the tables for a paper set the same digits with a power of ten.

    Args:
        p: the p-value.
        least: the smallest that the method can give (1 / 100,001 for 100,000 draws), if that is what p is.

    >>> format_p(0.046875), format_p(1.5e-9), format_p(3e-308), format_p(1e-5, least=1e-5)
    ('0.0469', '1.50e-09', '< 1e-300', '≤ 1.00e-05')
    """
    if p < 1e-300:
        return "< 1e-300"
    return f"{'≤ ' if least is not None and p <= least else ''}{p:#.3g}"


def related(p: str) -> str:
    """Return a p-value as it stands after its name: equal, or the bound that it is.

    >>> related(format_p(0.5)), related(format_p(0.0))
    ('= 0.500', '< 1e-300')
    """
    return p if p.startswith(("<", "≤")) else f"= {p}"


def count(queries: int) -> str:
    """Return a number of queries in words.

    >>> count(1), count(1300)
    ('1 query', '1,300 queries')
    """
    return counted(queries, "query")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which ends in y or takes an s.

    >>> counted(1, "query"), counted(1400, "labelled query"), counted(0, "document")
    ('1 query', '1,400 labelled queries', '0 documents')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def asked(queries: int, clusters: int | None) -> str:
    """Return a number of queries, and of different questions where several queries ask the same.

    >>> asked(150, None), asked(150, 30)
    ('150 queries', '150 queries (30 different questions)')
    """
    if clusters is None:
        return count(queries)
    return f"{count(queries)} ({counted(clusters, 'different question')})"


def join(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def few_names(names: Sequence[str]) -> str:
    """Return up to four names, or three and how many more.

    >>> few_names(["a", "b"]), few_names(list("abcde"))
    ('a and b', 'a, b, c and 2 others')
    """
    return join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} others"
