"""Problems in the words of Python."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from retrievers.errors import InputError

FLAGS = re.compile(r" \((?:[a-z ]+ )?--[\w-]+ ?(?:'[^']*'|[^()'])*\)")
"""An option of the command line: messages have it in parentheses, after its key."""
DECLARATION = re.compile(r'\b(columns|where) = \{ (\w+) = ("[^"]*") \}')
"""A declaration of one column, as an experiment file writes it."""


def without_flags(text: str) -> str:
    """Return a text without options of the command line.

    >>> without_flags("run all retrievers once (without --only)")
    'run all retrievers once'
    >>> without_flags('columns = { grade = "stars" } (--columns grade=stars)')
    'columns = { grade = "stars" }'
    """
    return FLAGS.sub("", text)


def remedy_as_python(remedy: str) -> str:
    """Return a fix of an experiment file as Python arguments.

    >>> remedy = 'say which: columns = { grade = "stars" } (--columns grade=stars)'
    >>> remedy_as_python(remedy)
    'say which: columns={"grade": "stars"}'
    >>> remedy_as_python('set dangling = "drop" under [relevance] (--dangling drop)')
    'set relevance={"dangling": "drop"}'
    """
    plain = without_flags(remedy)
    plain = DECLARATION.sub(r'\1={"\2": \3}', plain)
    plain = re.sub(r'(\w+) = ("[^"]*"|\w+) under \[(\w+)\]', r'\3={"\1": \2}', plain)
    return re.sub(r"(\w+) = (?=[\"\[{…])", r"\1=", plain)


@contextmanager
def problems_without_flags() -> Iterator[None]:
    """Raise an InputError inside without options of the command line.

    What an experiment file would have stays: Python may run such a file.
    """
    try:
        yield
    except InputError as error:
        problems = [
            problem._replace(
                what=without_flags(problem.what),
                remedy=without_flags(problem.remedy),
            )
            for problem in error.problems
        ]
        raise type(error)(problems) from error.__cause__
