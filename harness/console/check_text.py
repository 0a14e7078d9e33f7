"""A check as text."""

from collections.abc import Iterator
from typing import Any

from harness.console.dataset_text import summary_lines, summary_object
from harness.console.plan_text import plan_details, plan_notes, plan_sentence
from harness.english import (
    count_of,
    count_units,
    first_names,
    join_names,
    shared_word_count,
    unconverted_count,
)
from harness.evaluation.warnings import UnconvertedFiles
from harness.preflight.check import (
    AbsentModel,
    CheckReport,
    CheckWarning,
    RespondingService,
    UnsharedQueries,
)
from harness.preflight.detectable import DetectableDifference
from harness.preflight.passages import PassageCount
from harness.preflight.truncation import TruncationEstimate
from harness.wording.reading import QUALITY_PHRASES, column_lines, reading_line


def check_lines(report: CheckReport) -> list[str]:
    """Return the lines that `harness check` prints."""
    verdict = "nothing is wrong"
    if report.warnings:
        verdict = f"no error; {count_of(len(report.warnings), 'warning')}"
    return [*_first_lines(report), *_further_lines(report), verdict]


def _first_lines(report: CheckReport) -> Iterator[str]:
    """Yield the data, the warnings, and the sums of the plan."""
    dataset = report.dataset
    documents = count_of(dataset.document_count, "document")
    clusters = report.detectable.units if report.detectable.clusters else None
    queries = count_units(len(dataset.queries), clusters)
    path = f"{report.name}: {dataset.path}" if report.name else dataset.path
    yield f"{path}: {dataset.format}, {documents}, {queries}"
    unread_files = reading_line(dataset)
    if unread_files:
        yield unread_files
    for warning in report.warnings:
        yield f"warning: {warning_text(warning)}"
    yield from service_lines(report)
    if report.plan is not None and report.plan.rows:
        yield f"a run takes {plan_sentence(report.plan)}"
    elif report.plan is not None:
        yield "a run needs no model"
    if report.configurations:
        configurations = count_of(len(report.configurations), "configuration")
        default = f"besides the default {report.sweep_default}"
        if report.sweep_default in report.configurations:
            default = f"the default {report.sweep_default} among them"
        names = ", ".join(report.configurations)
        yield f"the sweep has {configurations}, {default}: {names}"
    for count in report.passages:
        yield passages_sentence(count)
    yield detectable_sentence(report.detectable)


def passages_sentence(count: PassageCount) -> str:
    """Return how many passages retrievers cut documents into.

    >>> passages_sentence(PassageCount(("bm25[8]",), 8, 888, exact=True))
    'bm25[8]: 888 passages of at most 8 characters'
    """
    about = "" if count.exact else "about "
    passages = f"{about}{count_of(count.passages, 'passage')}"
    characters = count_of(count.size, "character")
    return f"{first_names(count.retrievers)}: {passages} of at most {characters}"


def _further_lines(report: CheckReport) -> Iterator[str]:
    """Yield the data, how they were read, and the plan in detail."""
    dataset = report.dataset
    yield from summary_lines(report.summary, dataset)
    if report.queries_with_answers or report.queries_with_claims:
        answered = count_of(report.queries_with_answers, "query")
        claimed = count_of(report.queries_with_claims, "query")
        yield f"{answered} with a reference answer, {claimed} with claims"
    for kind, ids in dataset.data_quality.items():
        # Each lost query comes with the labels that it lost: all are named.
        names = "; ".join(ids) if kind == "lost-query" else first_names(ids)
        yield f"{QUALITY_PHRASES[kind]} ({len(ids):,}): {names}"
    if dataset.representatives:
        documents = count_of(len(dataset.representatives), "document")
        yield f"labels name fields: {documents} share the value of another"
    yield from column_lines(dataset)
    if report.plan is not None:
        yield from plan_details(report.plan)
    yield f"data digest {dataset.digest}"


def service_lines(report: CheckReport) -> list[str]:
    """Return a line for each service that responded."""
    return [_service_line(service) for service in report.services]


def _service_line(service: RespondingService) -> str:
    line = f"{service.retriever}: its {service.kind} answers"
    return f"{line}, 0 hits for the first query" if service.has_no_hits else line


def warning_text(warning: CheckWarning) -> str:
    """Return a warning in words."""
    if isinstance(warning, TruncationEstimate):
        return truncation_warning(warning)
    if isinstance(warning, UnsharedQueries):
        count = shared_word_count(len(warning.ids), warning.queries)
        return f"{count}: {first_names(warning.ids)}"
    if isinstance(warning, UnconvertedFiles):
        return unconverted_count(warning.files)
    if isinstance(warning, AbsentModel):
        model = "its model is not on this machine; a run downloads it"
        return f"{warning.retriever}: {model}"
    return f"{warning.problem}; a run needs it for what is not cached"


def truncation_warning(estimate: TruncationEstimate) -> str:
    """Return how much an encoder cuts off, with what can be done."""
    about = "" if estimate.exact else "about "
    documents = (
        f"{about}{estimate.beyond:,} of {count_of(estimate.sampled, 'document')} "
        f"({estimate.limit:,} tokens)"
    )
    share = 100 * estimate.lost / max(estimate.tokens, 1)
    all_tokens = count_of(estimate.tokens, "token")
    tokens = f"{about}{estimate.lost:,} of {all_tokens} ({share:.0f} %)"
    remedy = "add chunk, or use a model that reads more"
    users = ""
    if estimate.others:
        use = "uses" if len(estimate.others) == 1 else "use"
        users = f"; {join_names(list(estimate.others))} {use} it"
    return (
        f"{estimate.retriever} reads only the start of {documents}; "
        f"{tokens} are not read: {remedy}{users}"
    )


def detectable_sentence(detectable: DetectableDifference) -> str:
    """Say whether the queries are enough, and for which difference.

    >>> detectable_sentence(DetectableDifference(25))
    'enough queries? 25 queries reliably detect a difference of about 0.12'
    >>> print(detectable_sentence(DetectableDifference(138, comparisons=3)))
    enough queries? 138 queries and 3 pairs reliably detect a difference of about 0.056
    """
    kind = "cluster" if detectable.clusters else "query"
    units = count_of(detectable.units, kind)
    smallest_p = detectable.smallest_p()
    if smallest_p > detectable.alpha:
        comparisons = count_of(detectable.comparisons, "comparison")
        return (
            f"enough queries? No: {units} and {comparisons} give no corrected p below "
            f"{smallest_p:.2g}; at least {detectable.units_needed()} are needed"
        )
    pair_words = ""
    if detectable.comparisons > 1:
        pair_words = f" and {count_of(detectable.comparisons, 'pair')}"
    difference = f"{detectable.difference():.2g}"
    return (
        f"enough queries? {units}{pair_words} reliably detect a difference of about "
        f"{difference}"
    )


def check_object(report: CheckReport) -> dict[str, Any]:
    """Return a check as the object that `--json` prints."""
    dataset = report.dataset
    detectable = report.detectable
    check_cells: dict[str, Any] = {"name": report.name} if report.name else {}
    check_cells |= {
        "path": dataset.path,
        "format": dataset.format,
        "documents": dataset.document_count,
        "queries": len(dataset.queries),
        "references": report.queries_with_answers,
        "claims": report.queries_with_claims,
        "digest": dataset.digest,
        "columns": {table.file: dict(table.columns) for table in dataset.tables},
        "ledger": dict(dataset.data_quality),
        "portrait": summary_object(report.summary),
        "warnings": [warning_text(warning) for warning in report.warnings],
        "online": service_lines(report),
        "configurations": list(report.configurations),
        "passages": [count._asdict() for count in report.passages],
        "capacity": {
            **detectable._asdict(),
            "difference": detectable.difference() if detectable.units > 1 else None,
        },
    }
    if report.plan is not None:
        check_cells |= {
            "plan": report.plan.rows,
            "total": report.plan.total()._asdict(),
            "notes": list(plan_notes(report.plan)),
        }
    return check_cells
