"""The effort of labelling in words."""

from harness.english import count_of, count_queries
from harness.evaluation.judging_effort import SampledEffort


def effort_sentence(effort: SampledEffort) -> str:
    """Return what labelling the proposed sample takes.

    >>> effort_sentence(SampledEffort(30, 360))
    'No query has labels. Labelling 30 queries takes about 2 hours (360 documents).'
    """
    return (
        f"No query has labels. Labelling {count_queries(effort.queries)} takes "
        f"about {effort.time} ({count_of(effort.documents, 'document')})."
    )
