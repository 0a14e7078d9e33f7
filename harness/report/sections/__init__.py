"""The sections of a report."""

from collections.abc import Callable

from harness.report.sections.about_data import data_section
from harness.report.sections.abstention import abstention_section
from harness.report.sections.all_measures import measures_section
from harness.report.sections.contexts import contexts_section
from harness.report.sections.costs import costs_section
from harness.report.sections.decision import decision_section
from harness.report.sections.fails import fails_section
from harness.report.sections.pairs import pairs_section
from harness.report.sections.provenance import provenance_section
from harness.report.sections.rerankers import rerankers_section
from harness.report.sections.slices import slices_section
from harness.report.sections.sweep import sweep_section
from harness.report.templates import AnySection
from harness.report.view import View

SECTIONS: tuple[Callable[[View], AnySection | None], ...] = (
    decision_section,
    fails_section,
    slices_section,
    costs_section,
    contexts_section,
    measures_section,
    sweep_section,
    pairs_section,
    rerankers_section,
    abstention_section,
    data_section,
    provenance_section,
)
"""In the order of the page; a section that has nothing to show returns None."""
