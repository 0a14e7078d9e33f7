"""Problems in the words of Python."""

from collections.abc import Iterator
from contextlib import contextmanager

from retrievers.errors import InputError
from retrievers.remedy import remedy_without_options


@contextmanager
def problems_without_options() -> Iterator[None]:
    """Raise an InputError inside without options of the command line.

    What an experiment file would have stays: Python may run such a file.
    """
    try:
        yield
    except InputError as error:
        problems = [
            problem._replace(remedy=remedy_without_options(problem.remedy))
            for problem in error.problems
        ]
        raise type(error)(problems) from error.__cause__
