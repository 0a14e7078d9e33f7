"""Answers that are given a second time."""

from collections.abc import Mapping

from harness.build.built_retriever import BuiltRetriever
from harness.running.answer import RunState
from retrievers.external import known_documents, match_hit_ids
from retrievers.meter import Meter
from retrievers.types import AnswerFacts, Query, Ranking, with_min_score


class Repetition:
    """Compares the timed answers of a retriever with those of the run.

    It does so only if the retriever may answer differently, has no trials, which show
    that better, and no parts: with parts it is timed on the answers that they gave.

    Args:
        built: the retriever.
        answers: query id -> the ranking of the run.
        state: of the run.
    """

    def __init__(
        self, built: BuiltRetriever, answers: Mapping[str, Ranking], state: RunState
    ) -> None:
        self._built = built
        self._answers = answers
        self._state = state
        may_differ = not built.is_repeatable and not built.retriever.parts
        self._is_compared = may_differ and built.trials == 1
        self._changed: dict[str, bool] = {}

    def compare(self, query: Query, ranking: Ranking) -> None:
        """Compare one answer with that of the run, by their documents."""
        run_answer = self._answers.get(query.id)
        if not self._is_compared or run_answer is None:
            return
        documents = known_documents(self._state.resources.corpus)
        [matched] = match_hit_ids([ranking], documents, Meter(), allow_unknown=True)
        if self._built.min_score is not None:
            matched = with_min_score(matched, self._built.min_score)
        context = self._state.context
        left_out = query.left_out(exclude_self=context.exclude_self)
        first_hits = matched.doc_ids[: context.depth]
        answered = tuple(hit for hit in first_hits if hit not in left_out)
        # The run requested more hits, for those that it left out.
        in_both = context.depth - (len(first_hits) - len(answered))
        is_changed = answered != run_answer.doc_ids[:in_both]
        self._changed[query.id] = self._changed.get(query.id, False) or is_changed

    @property
    def facts(self) -> AnswerFacts:
        """How many queries were compared, and how many had another answer."""
        if not self._changed:
            return AnswerFacts()
        changed = sum(self._changed.values())
        return AnswerFacts(compared=len(self._changed), changed=changed)
