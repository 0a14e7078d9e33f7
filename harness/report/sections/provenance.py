"""How to run an experiment again."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import tomli_w

from harness.english import names_or_count
from harness.experiment import walk_texts
from harness.pages import visible_text
from harness.records import Manifest, Results
from harness.records.staging import is_temporary
from harness.report.paper import Citation, citation_texts
from harness.report.templates import Section
from harness.report.view import View
from retrievers.options.user_code import OBJECT_PREFIX
from retrievers.types import stored_facts


class NamedText(NamedTuple):
    """A fact about a machine or a retriever as text."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ProvenanceContext:
    """The section's content."""

    sentence: str
    """What a run gives that is repeated."""
    experiment: str
    """The experiment as TOML."""
    machine: list[NamedText]
    facts: dict[str, list[NamedText]]
    """Retriever -> what it used, for those that tell it."""
    folder: str
    """The results folder, as commands on the page name it; "" if none can."""
    quote: list[Citation]


def provenance_section(view: View) -> Section[ProvenanceContext]:
    """The command, the experiment, the versions, the machine, texts to quote."""
    context = ProvenanceContext(
        sentence=repetition_sentence(view.manifest),
        experiment=visible_text(tomli_w.dumps(view.manifest.experiment.options)),
        machine=_machine_facts(view.manifest),
        facts=_facts_by_retriever(view.manifest),
        folder=reproducible_path(view.results),
        quote=citation_texts(view),
    )
    return Section("again", "Run it again", context)


def repetition_sentence(manifest: Manifest) -> str:
    """Return what a run gives that is repeated.

    A service, an agent or a function may answer differently each time.
    """
    sentence = "Same data, versions and settings give the same rankings"
    varying = [
        name
        for name in manifest.finished
        if manifest.retrievers[name].provenance.answers.trials is not None
    ]
    if varying:
        sentence += f"; {names_or_count(varying)} may answer otherwise"
    return f"{sentence}."


def _facts_by_retriever(manifest: Manifest) -> dict[str, list[NamedText]]:
    """Return what each retriever used, for those that tell it."""
    facts: dict[str, list[NamedText]] = {}
    for name, outcome in manifest.retrievers.items():
        texts = stored_facts(outcome.provenance)
        if texts:
            facts[name] = [NamedText(key, text) for key, text in texts.items()]
    return facts


def reproducible_path(results: Results) -> str:
    """The path of results that `harness reproduce` can repeat; "" if it cannot.

    It cannot if the folder is temporary, or if the experiment names objects of Python.
    """
    if is_temporary(results.folder):
        return ""
    texts = walk_texts(results.manifest.experiment.options)
    if any(text.startswith(OBJECT_PREFIX) for _, text in texts):
        return ""
    return results_path(results)


def results_path(results: Results) -> str:
    """The path of the results folder for commands; a run moves it there at its end.

    A path that a page cannot show as it is becomes results/NAME.
    """
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


def _machine_facts(manifest: Manifest) -> list[NamedText]:
    """Return the facts about the machine that are known, each as one text."""
    machine = manifest.machine
    limits = [f"{limit.variable}={limit.threads}" for limit in machine.threads]
    facts = (
        NamedText("system", machine.system),
        NamedText("release", machine.release),
        NamedText("processor", machine.processor),
        NamedText("cores", _number_text(machine.cores)),
        NamedText("threads", ", ".join(limits)),
        NamedText("load", _number_text(machine.load)),
    )
    return [fact for fact in facts if fact.text]


def _number_text(number: float | None) -> str:
    return "" if number is None else str(number)
