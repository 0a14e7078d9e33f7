"""How to run an experiment again."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import tomli_w

from harness.pages import visible_text
from harness.records import Manifest, Results
from harness.report.paper import Citation, citation_texts
from harness.report.templates import Section
from harness.report.view import View


class MachineFact(NamedTuple):
    """A fact about the machine as text."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ProvenanceContext:
    """The section's content."""

    experiment: str
    """As TOML."""
    machine: list[MachineFact]
    folder: str
    """Of the results, as it stands in a command."""
    quote: list[Citation]


def provenance_section(view: View) -> Section[ProvenanceContext]:
    """The command, the experiment, the versions, the machine, texts to quote."""
    context = ProvenanceContext(
        experiment=visible_text(tomli_w.dumps(view.manifest.experiment)),
        machine=_machine_facts(view.manifest),
        folder=results_path(view.results),
        quote=citation_texts(view),
    )
    return Section("again", "Run it again", context)


def results_path(results: Results) -> str:
    """The path of the results folder for commands; a run moves it there at its end."""
    folder_name = results.folder.name.removesuffix(".unfinished")
    folder = results.folder.with_name(folder_name).resolve()
    here = Path.cwd()
    if folder.is_relative_to(here):
        folder = folder.relative_to(here)
    path = shlex.quote(folder.as_posix())
    # Nothing can be escaped between the backquotes of Markdown.
    if "`" in path or visible_text(path) != path:
        return f"results/{results.manifest.name}"
    return path


def _machine_facts(manifest: Manifest) -> list[MachineFact]:
    """Return the facts about the machine that are known, each as one text."""
    facts: list[MachineFact] = []
    for key, fact in manifest.machine.items():
        if fact in ({}, None, ""):
            continue
        text = str(fact)
        if isinstance(fact, dict):
            text = ", ".join(f"{part}={detail}" for part, detail in fact.items())
        facts.append(MachineFact(key, text))
    return facts
