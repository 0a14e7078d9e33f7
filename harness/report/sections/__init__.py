"""The sections of a report: each is a function here and its template in `templates/`; there is no list of them.

Each file has `PLACES`: place on the page -> function of the view, which returns None if there is nothing to show.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from harness.report.charts import Section
from harness.report.view import View


def sections() -> list[Callable[[View], Section | None]]:
    """The functions of this folder's files, in the order of the page."""
    modules = [
        import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)
    ]
    places: dict[int, Callable[[View], Section | None]] = {}
    for module in modules:
        places |= module.PLACES
    return [places[place] for place in sorted(places)]
