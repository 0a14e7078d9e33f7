"""The sections of a report: each is a file here and its template in `templates/`; there is no list of them.

Each file has `PLACE`, which orders the page, and `section(view)`, which is None if there is nothing to show.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from harness.report.charts import Section
from harness.report.view import View


def sections() -> list[Callable[[View], Section | None]]:
    """The functions of this folder's files, in the order of the page."""
    modules = [import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__)]
    return [module.section for module in sorted(modules, key=lambda module: module.PLACE)]
