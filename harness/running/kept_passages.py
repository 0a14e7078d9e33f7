"""Passages that stay with rankings."""

from collections.abc import Mapping
from dataclasses import replace

from harness.english import count_of
from harness.records.facts import SHORT_CONTEXT_NOTE, WHOLE_DOCUMENTS
from harness.running.context import RunContext
from harness.running.replayed import StageResult
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.resources import Corpus
from retrievers.texts.placed_passages import CHANGED_PASSAGE_NOTE
from retrievers.types import Passage, Ranking


def keep_passages(
    result: StageResult, corpus: Corpus, context: RunContext, meter: Meter
) -> StageResult:
    """Return a retriever's answers with passages, if the run keeps them.

    If the passages of any ranking are unknown, all rankings get whole documents.

    Args:
        result: the answers.
        corpus: has the documents.
        context: decides whether passages are kept, and how tokens are counted.
        meter: receives notes of queries whose passages, down to the depth, do not
            fill a context; has those of the search.

    Raises:
        BackendError: a hit is no document of the corpus, or the search noted a passage
            that is not in its document.
    """
    if not context.keeps_passages:
        return result
    changed = meter.notes().get(CHANGED_PASSAGE_NOTE, ())
    if changed:
        raise BackendError(
            "passages are not in the text of their documents "
            f"({count_of(len(changed), 'document')}, such as {changed[0]!r}): cut "
            "texts without changing them, or leave out the measures of passages"
        )
    facts = result.facts
    answers = result.answers
    if any(ranking.passages is None and len(ranking) for ranking in answers.values()):
        with meter.stage("count-tokens"):
            answers = whole_documents(answers, corpus, context)
        answer_facts = replace(facts.answers, passages=WHOLE_DOCUMENTS)
        facts = replace(facts, answers=answer_facts)
    for query_id, ranking in answers.items():
        passages = ranking.passages or ()
        tokens = sum(passage.tokens for passage in passages)
        if len(passages) >= context.depth and tokens < context.context_tokens:
            meter.note(SHORT_CONTEXT_NOTE, query_id)
    return StageResult(answers, facts, result.notes, result.per_query)


def whole_documents(
    answers: Mapping[str, Ranking], corpus: Corpus, context: RunContext
) -> dict[str, Ranking]:
    """Return rankings with each document as one passage."""
    ids = sorted(set().union(*(ranking.doc_ids for ranking in answers.values())))
    documents = corpus.contents(ids, "counted in tokens")
    texts = [documents[doc_id].text for doc_id in ids]
    counts = context.count_tokens(texts).tolist()
    passage_of: dict[str, Passage] = {}
    for doc_id, text, tokens in zip(ids, texts, counts, strict=True):
        passage_of[doc_id] = Passage(doc_id, 0, len(text), tokens, 0.0)
    with_passages: dict[str, Ranking] = {}
    for query_id, ranking in answers.items():
        passages = [passage_of[hit.doc_id]._replace(score=hit.score) for hit in ranking]
        with_passages[query_id] = ranking.with_passages(passages)
    return with_passages
