"""How to run an experiment again."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from harness.pages import visible_text
from harness.records import Results
from harness.report.templates import Section
from harness.report.view import View


def provenance_section(view: View) -> Section:
    """The experiment, the versions, the machine, and how to run it again."""
    experiment, machine = (
        tomli_w.dumps(view.manifest.experiment),
        _flat(view.manifest.machine),
    )
    context = {
        "experiment": visible_text(experiment),
        "machine": machine,
        "folder": results_path(view.results),
    }
    return Section("provenance", "Provenance", context)


def results_path(results: Results) -> str:
    """The path of the results folder for commands; a run moves it there at its end."""
    folder = results.folder.with_name(
        results.folder.name.removesuffix(".unfinished")
    ).resolve()
    here = Path.cwd()
    path = shlex.quote(
        (folder.relative_to(here) if folder.is_relative_to(here) else folder).as_posix()
    )
    # Nothing can be escaped between the backquotes of Markdown.
    return (
        f"results/{results.manifest.name}"
        if "`" in path or visible_text(path) != path
        else path
    )


def _flat(table: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: ", ".join(f"{k}={v}" for k, v in value.items())
        if isinstance(value, Mapping)
        else str(value)
        for key, value in table.items()
        if value not in ({}, None, "")
    }
