"""How to run an experiment again."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import tomli_w

from harness.pages import visible_text
from harness.records import Results
from harness.records.environment import Machine
from harness.report.paper import citation_texts
from harness.report.templates import Section
from harness.report.view import View
from retrievers.types import stored_facts


def provenance_section(view: View) -> Section:
    """The command, the experiment, the versions, the machine, texts to quote."""
    context = {
        "experiment": visible_text(tomli_w.dumps(view.manifest.experiment)),
        "machine": _flat_facts(view.manifest.machine),
        "facts": _facts_by_retriever(view.results),
        "folder": results_path(view.results),
        "quote": citation_texts(view),
    }
    return Section("again", "Run it again", context)


def _facts_by_retriever(results: Results) -> dict[str, object]:
    """Return what each retriever used, for those that tell it."""
    outcomes = results.manifest.retrievers.items()
    stored = {name: stored_facts(outcome.provenance) for name, outcome in outcomes}
    return {name: facts for name, facts in stored.items() if facts}


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


def _flat_facts(machine: Machine) -> dict[str, object]:
    """Return the facts about the machine that are known, each as one text."""
    facts: dict[str, object] = {}
    for key, fact in asdict(machine).items():
        if fact in ({}, None, ""):
            continue
        if isinstance(fact, Mapping):
            parts = [f"{part}={detail}" for part, detail in fact.items()]
            facts[key] = ", ".join(parts)
        else:
            facts[key] = str(fact)
    return facts
