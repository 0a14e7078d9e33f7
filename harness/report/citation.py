"""What a paper or a message says of the result: one sentence, LaTeX, BibTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.english import asked
from harness.evaluation.wording import pair_sentence, settings_sentence
from harness.report import text
from harness.report.view import View, second


def citation(view: View) -> Mapping[str, str]:
    """What is copied, by its name: the leader against the next, with n, test, interval and adjusted p."""
    leader, other, manifest = view.conclusion.leader, second(view), view.manifest
    queries = asked(view.n, view.conclusion.clusters)
    if other == leader:
        sentence = f"On {queries}, {leader} has a mean {view.primary} of {text.score(view.mean(view.primary, leader))}."
    else:
        row = view.conclusion.against[other]
        sentence = f"On {queries}: {pair_sentence(row, view.settings)} {settings_sentence(view.settings)}"
    digest, version = manifest.dataset.digest, manifest.versions["retriever-harness"]
    key = re.sub(r"[^A-Za-z0-9]+", "", manifest.name) or "results"
    bibtex = (
        f"@misc{{{key}{manifest.started[:4]},\n"
        f"  title = {{{text.latex(manifest.name)}: {text.latex(view.primary)} of {len(view.retrievers)} retrievers "
        f"over {queries}}},\n"
        f"  year = {{{manifest.started[:4]}}},\n"
        f"  note = {{retriever-harness {text.latex(version)}, data {text.latex(digest)}}}\n}}"
    )
    return {
        "Sentence": sentence,
        "LaTeX": f"{text.latex(sentence)}\n\\input{{tables/leaderboard.tex}}",
        "BibTeX": bibtex,
        "Data": digest,
    }
