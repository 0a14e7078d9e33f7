"""The interface of a judge of answers, the judges that are no chat models, and judging what was retrieved.

The lexical judge is weak, offline and deterministic: it misses paraphrases and negations, and never reports a
contradiction.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from scipy import special

from harness.answers.overlap import sentences
from harness.dataset import Dataset
from harness.measures import Claimed, Measure
from harness.records import readings
from harness.records.readings import (
    PEOPLE,
    By,
    ClaimPassage,
    ClaimsJudging,
    Readings,
    Word,
)
from retrievers.cross_encoder import CrossEncoderReranker
from retrievers.errors import BackendError, InputError, Problem, Unreadable
from retrievers.meter import Meter
from retrievers.types import Floats, Query, Ranking
from retrievers.words import RULE, tokenize

Answer = TypeVar("Answer")
Given = TypeVar("Given")
Replies = Iterator[tuple[int, Answer | None]]
"""Indices of requests with their replies, in any order: None if unreadable; a missing index has no reply."""
THRESHOLD = 0.8
"""The share of a claim's distinct tokens that a passage must contain."""
HELPS = 0.5
"""The share of a query's distinct tokens that a helpful sentence contains."""


class Inquiry(NamedTuple):
    """A query, and a text that may help to answer it."""

    question: str
    text: str


class Questions(NamedTuple):
    """Questions that an answer would answer."""

    questions: tuple[str, ...]
    noncommittal: tuple[bool, ...]
    """For each, whether the model called the answer evasive."""


class Judge(Protocol):
    """Gives verdicts on texts."""

    @property
    def name(self) -> str:
        """Kind, model and threshold: everything that affects a verdict, except the prompt."""

    @property
    def prompt(self) -> str:
        """A digest of the prompts; "" without prompts."""

    @property
    def unread(self) -> str:
        """The first unreadable reply, for a message: "such as …"; "" if there was none."""

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Whether each text entails its claim."""

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence helps to answer its query."""

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its query; none from a judge that is not a language model."""

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """The questions that each text answers; none from a judge that is not a language model."""


def signed(judge: Judge) -> By:
    """The fields of every row of a judge."""
    return By(judge.name, judge.prompt)


def asked_once(
    wanted: Iterable[Given],
    known: Callable[[Given], bool],
    ask: Callable[[Sequence[Given]], Replies[Answer]],
) -> dict[Given, Answer | None]:
    """Request everything that is unknown, once each.

    If a judge's earlier replies are known, unreadable replies now are not an error.

    Returns:
        The replies in the order of the requests; None if unreadable or missing.

    Raises:
        Unreadable: there are no earlier replies, and every reply is unreadable.

    >>> asked_once(["a", "b", "a"], {"b"}.__contains__, lambda missing: iter([(0, len(missing))]))
    {'a': 1}
    """
    distinct = list(dict.fromkeys(wanted))
    missing = [one for one in distinct if not known(one)]
    answers: dict[int, Answer | None] = {}
    try:
        answers.update(ask(missing) if missing else ())
    except Unreadable:
        if len(missing) == len(distinct):
            raise
    return {one: answers.get(place) for place, one in enumerate(missing)}


def reference_text(query: Query) -> str:
    """The reference answers of a query as one text; without one, its claims."""
    return "\n".join(
        query.reference.answers or [claim.text for claim in query.reference.claims]
    )


def store_authored(folder: Path, queries: Iterable[Query]) -> None:
    """Store the claims that came with the data, where they are not yet stored."""
    people = readings.read_readings(folder, By(PEOPLE)).claims
    authored = {
        reference_text(q): [c.text for c in q.reference.claims]
        for q in queries
        if q.reference.claims
    }
    new = {text: claims for text, claims in authored.items() if text not in people}
    readings.append_claims(folder, By(PEOPLE), new)


class UnpromptedJudge:
    """The base of judges that are not chat models: a text's claims are its sentences; no ratings, no questions."""

    prompt = ""
    unread = ""

    def __init__(self, threshold: float) -> None:
        """Check the threshold of entailment, above 0 and at most 1."""
        if not 0 < threshold <= 1:
            raise InputError(
                Problem("judge.threshold", f"{threshold} is not above 0 and at most 1")
            )
        self.threshold = threshold

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The sentences of each text."""
        for place, text in enumerate(texts):
            yield place, tuple(sentences(text))

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Nothing: no rating."""
        return iter(())

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """Nothing: no question."""
        return iter(())


class LexicalJudge(UnpromptedJudge):
    """A claim is entailed if the passage has at least `threshold` of its distinct BM25 tokens, else neutral.

    A sentence helps if it has half of the query's distinct tokens.
    """

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        """Use a share of tokens, above 0 and at most 1."""
        super().__init__(threshold)
        self.name = f"lexical {RULE} {threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Entailed or neutral for each pair; a claim without a token has no verdict."""
        for place, pair in enumerate(pairs):
            share = held(pair.claim, pair.text)
            yield (
                place,
                None
                if share is None
                else "entailed"
                if share >= self.threshold
                else "neutral",
            )

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence has half of its query's tokens."""
        for place, one in enumerate(asked):
            share = held(one.question, one.text)
            yield place, None if share is None else share >= HELPS


def held(claim: str, passage: str) -> float | None:
    """The share of a claim's distinct tokens in a passage; None for a claim without a token.

    >>> held("the fee is monthly", "It asks whether the fee of 300 yen is paid in advance.")
    0.75
    """
    wanted = _tokens(claim)
    return len(wanted & _tokens(passage)) / len(wanted) if wanted else None


@lru_cache(maxsize=1 << 14)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


ENTAILED = 0.5
LABELS: Mapping[str, Word] = {
    "entailment": "entailed",
    "contradiction": "contradicted",
    "neutral": "neutral",
}
"""Output names of models -> verdicts."""


class NliJudge(UnpromptedJudge):
    """A claim is entailed, or contradicted, if the model gives that at least the probability `threshold`.

    A sentence helps if the model finds that the query follows from it, for which such models were not trained.
    """

    def __init__(
        self, model: str, *, meter: Meter, threshold: float = ENTAILED
    ) -> None:
        """Configure the model, which is loaded for the first pair.

        Args:
            model: a folder, or a name of the hub, with the outputs entailment, neutral and contradiction.
            meter: counts texts, calls, tokens, lost_tokens.
            threshold: the least probability, above 0 and at most 1.
        """
        super().__init__(threshold)
        self._meter = meter
        self._model = CrossEncoderReranker(model=model)

    @property
    def name(self) -> str:
        """The model, its weights and the threshold."""
        weights = self._model.weights
        return f"nli {weights.name} {weights.revision[:12]} {self.threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """The verdict on each pair; pairs of similar length are batched."""
        order = sorted(
            range(len(pairs)),
            key=lambda i: (len(pairs[i].text) + len(pairs[i].claim), pairs[i]),
        )
        for start in range(0, len(order), self._model.request_size):
            places = order[start : start + self._model.request_size]
            yield from zip(
                places,
                self._read([(pairs[i].text, pairs[i].claim) for i in places]),
                strict=True,
            )

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each query follows from its sentence according to the model."""
        for place, word in self.verdicts(
            [ClaimPassage(one.question, one.text) for one in asked]
        ):
            yield place, word == "entailed"

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[Word]:
        words = _words(self._model.labels, self._model.weights.model)
        logits, tokens = self._model.logits(pairs)
        read, lost = (int(of.sum()) for of in (tokens.read, tokens.truncated))
        self._meter.count(texts=len(pairs), calls=1, tokens=read, lost_tokens=lost)
        return [self._verdict(row, words) for row in special.softmax(logits, axis=1)]

    def _verdict(self, row: Floats, words: Sequence[Word]) -> Word:
        likely, word = max(
            (float(row[i]), word) for i, word in enumerate(words) if word != "neutral"
        )
        return word if likely >= self.threshold else "neutral"


def _words(named: Mapping[int, str], name: str) -> list[Word]:
    """The verdict of each output of the model, by the names in its configuration."""
    meanings = [LABELS.get(str(named[place]).lower()) for place in sorted(named)]
    words = [word for word in meanings if word is not None]
    if sorted(words) != sorted(LABELS.values()) or len(meanings) != len(words):
        remedy = 'use a model for natural language inference, for example "cross-encoder/nli-deberta-v3-small"'
        labels = ", ".join(map(str, named.values()))
        what = f"{name} has the outputs {labels}, not entailment, neutral and contradiction"
        raise InputError(Problem("judge.model", what, remedy))
    return words


Rankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its answer."""
_UNDEFINED = "measures by claims are undefined"


def judge_rankings(
    folder: Path,
    judge: Judge,
    queries: Sequence[Query],
    retrieved: Mapping[str, Mapping[str, str]],
    known: Readings,
) -> dict[str, Claimed]:
    """Judge every claim against every document retrieved for its query, and store the verdicts in a folder.

    Args:
        folder: where claims.jsonl, verdicts.jsonl and passages.jsonl are written.
        judge: to ask.
        queries: of the run.
        retrieved: query id -> document id -> its text, for the documents that measures use.
        known: this judge's replies in an earlier run.

    Returns:
        The claims of each query that has any, with the verdicts.

    Raises:
        BackendError: the judge failed permanently; a chat model's replies so far are in the cache.
    """
    by, read = signed(judge), Readings()
    read.claims = _claims(folder, by, judge, queries, known)
    pairs = list(_pairs(queries, retrieved, read))
    given: dict[ClaimPassage, Word | None] = {
        pair: word for pair in pairs if (word := known.word(*pair)) is not None
    }
    ask: Callable[[Sequence[ClaimPassage]], Replies[Word]] = judge.verdicts
    words: dict[ClaimPassage, Word | None] = {
        **given,
        **asked_once(pairs, given.__contains__, ask),
    }
    readings.append_verdicts(
        folder, by, {pair: words[pair] for pair in dict.fromkeys(pairs)}
    )
    read.verdicts = {
        (claim, readings.digest_of(text)): word for (claim, text), word in words.items()
    }
    texts = {
        document: text
        for by_document in retrieved.values()
        for document, text in by_document.items()
    }
    readings.write_passages(folder, dict(sorted(texts.items())))
    digests = {document: readings.digest_of(text) for document, text in texts.items()}
    return readings.claimed(queries, read, digests)


def judge_run(
    folder: Path,
    earlier: Path,
    judge: Judge,
    dataset: Dataset,
    rankings: Rankings,
    measures: Sequence[Measure],
) -> ClaimsJudging:
    """Judge the hits of a run, down to the deepest cutoff of its measures; replies of an earlier run are reused.

    If the judge fails, its measures are undefined, with a warning; the rankings are kept.

    Args:
        folder: where claims and verdicts are written.
        earlier: folder of an earlier run.
        judge: who decides.
        dataset: its queries with claims, or with references to take them from.
        rankings: of the run.
        measures: those by claims.
    """
    by = signed(judge)
    known = readings.read_readings(earlier, by)
    wanted = judged_documents(dataset.queries, rankings, measures)
    texts = {
        id_: doc.content
        for id_, doc in dataset.texts(
            {id_ for ids in wanted.values() for id_ in ids}
        ).items()
    }
    retrieved = {
        query: {id_: texts[id_] for id_ in sorted(ids) if id_ in texts}
        for query, ids in wanted.items()
    }
    facts = {
        "judge": by.judge,
        "prompt": by.prompt,
        "depth": str(depth_of(measures) or "all"),
    }
    try:
        claims = judge_rankings(folder, judge, dataset.queries, retrieved, known)
    except BackendError as error:
        return ClaimsJudging(
            {}, facts, f"claims were not judged: {_UNDEFINED}: {error}"
        )
    verdicts = readings.read_readings(folder, by).verdicts
    unreadable = sum(word is None for word in verdicts.values())
    if judge.unread and unreadable == len(verdicts):
        gave = f"the judge gave {len(verdicts):,} verdicts, none of them readable ({judge.unread})"
        return ClaimsJudging(
            {},
            facts,
            f"{gave}, so that {_UNDEFINED}: check the judge's model and its server",
        )
    counts = {
        "queries": len(claims),
        "claims": sum(len(one.claims) for one in claims.values()),
        "verdicts": len(verdicts),
        "unreadable": unreadable,
    }
    return ClaimsJudging(
        claims, facts | {key: str(number) for key, number in counts.items()}
    )


def judged_documents(
    queries: Sequence[Query], rankings: Rankings, measures: Sequence[Measure]
) -> dict[str, set[str]]:
    """The documents that measures by claims use: query id -> document ids, over all retrievers.

    The deepest cutoff of the measures counts; without a cutoff, all stored hits.
    """
    depth = depth_of(measures)
    documents_of = {
        query.id: set[str]()
        for query in queries
        if query.reference.claims or query.reference.answers
    }
    for answers in rankings.values():
        for query, documents in documents_of.items():
            if query in answers:
                documents.update(answers[query].doc_ids[:depth])
    return documents_of


def depth_of(measures: Sequence[Measure]) -> int | None:
    """The deepest cutoff of the measures by claims; None if one has none."""
    cutoffs = [measure.cutoff for measure in measures if measure.claimed]
    return (
        None
        if None in cutoffs
        else max((cutoff for cutoff in cutoffs if cutoff), default=0)
    )


def _claims(
    folder: Path, by: By, judge: Judge, queries: Sequence[Query], known: Readings
) -> dict[str, tuple[str, ...] | None]:
    """The claims that the judge extracts from references without claims. All are stored, each text once."""
    store_authored(folder, queries)
    bare = [
        q.reference.answers[0]
        for q in queries
        if q.reference.answers and not q.reference.claims
    ]
    given = {
        text: known.claims[text] for text in bare if known.claims.get(text) is not None
    }
    claims = {**given, **asked_once(bare, given.__contains__, judge.claims)}
    readings.append_claims(folder, by, claims)
    return claims


def _pairs(
    queries: Sequence[Query], retrieved: Mapping[str, Mapping[str, str]], read: Readings
) -> Iterator[ClaimPassage]:
    for query in queries:
        claims = readings.claims_of(query, read)
        for _, text in sorted(retrieved.get(query.id, {}).items()):
            yield from (ClaimPassage(claim, text) for claim in claims)
