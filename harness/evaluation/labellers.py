"""Whose labels are taken: the verdicts under each person's own."""

from collections.abc import Mapping

from harness.dataset import Labels
from harness.evaluation.compare import compare
from harness.evaluation.evaluate import settings_of
from harness.evaluation.grading import by_labeller, grade_labels, labels_that_count
from harness.evaluation.readers import Judged, lists_of, primary_of, score_lists
from harness.evaluation.verdict import LabellerVerdict
from harness.experiment import Relevance
from harness.measures import parse
from harness.records import Results
from harness.stats.power import at_look


def labeller_verdicts(results: Results, relevance: Relevance) -> tuple[LabellerVerdict, ...]:
    """Test the primary measure's family anew by the labels of each person who labelled beside others.

    The tests are those of the run, over the queries that the person labelled; nothing is corrected for the number of
    labellers, since the verdict of the run stays that of the merge.
    """
    if parse(primary_of(results.manifest.resolved)).own:  # its function may have gone with its process
        return ()
    labels = labels_that_count({query: asked.labels for query, asked in results.queries.items()})
    verdicts = (_verdict(results, name, own, relevance) for name, own in by_labeller(labels).items())
    return tuple(verdict for verdict in verdicts if verdict.rows)


def _verdict(results: Results, name: str, labels: Mapping[str, Labels], relevance: Relevance) -> LabellerVerdict:
    measure, declared = parse(primary_of(results.manifest.resolved)), settings_of(results.manifest)
    graded = grade_labels(labels, relevance)
    queries = {query: results.queries[query].query for query in graded.grades}
    if not queries:
        return LabellerVerdict(name, 0, {})
    scores = score_lists(Judged((measure,), measure, graded, queries, declared), lists_of(results))
    baseline = results.manifest.resolved.baseline
    rows = compare(scores, baseline=baseline, settings=at_look(declared, scores.n))
    return LabellerVerdict(name, scores.n, {(row.a, row.b): row for row in rows})
