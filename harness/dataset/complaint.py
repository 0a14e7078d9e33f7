"""A complaint about a row, before its place is known."""

from typing import NamedTuple

from retrievers.remedy import Remedy


class Complaint(NamedTuple):
    """What is wrong, and what to do."""

    problem: str
    remedy: Remedy | str
