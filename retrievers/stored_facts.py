"""The facts of a retriever as texts of a manifest.

A manifest has one text under each key. Records become such texts (`stored_facts`) and
are read back from them (`parse_facts`). This module alone knows the keys of the fields,
and the order of all keys; a `Fact` brings its own key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, starmap
from typing import Any, NamedTuple

from retrievers.facts import (
    AnswerFacts,
    CollectionFacts,
    Fact,
    ModelFacts,
    Origin,
    RerankerFacts,
    RetrieverFacts,
    VectorFacts,
)
from retrievers.prices import Price

COUNT_KEYS = (
    "trials",
    "answers_compared",
    "answers_changed",
    "vectors",
    "dimensions",
    "points",
    "indexed_points",
)
"""Keys whose text is refused if it is not a whole number. A text of another field that
cannot be read stays a fact under its key."""
NUMBER_KEY_ENDS = (
    "vector_bytes",
    "usd_per_thousand_searches",
    "_per_text",
    "_per_query",
)
"""Ends of keys whose text is refused if it is not a number from 0."""
RERANKER_PREFIX = "reranker "
"""Comes before the keys of a reranker."""
MAX_COUNT_DIGITS = 18
"""Digits of a count in a manifest, at most: any such number fits 64 bits."""


class _Form(NamedTuple):
    """How the content of a field is written, and read; None for an unreadable text."""

    write: Callable[[Any], str]
    parse: Callable[[str], str | float | None]


class _StoredField(NamedTuple):
    """A field of a record with its key in the manifest."""

    key: str
    field: str
    form: _Form


def parse_count(text: str) -> int | None:
    """Return the count in a manifest's text; None if it is no count, or too long.

    >>> parse_count("12"), parse_count("1.5"), parse_count("")
    (12, None, None)
    """
    if not text.isdecimal() or len(text) > MAX_COUNT_DIGITS:
        return None
    return int(text)


def _read_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def _read_signed_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


TEXT = _Form(str, str)
COUNT = _Form(str, parse_count)
BYTES = _Form("{:.0f}".format, _read_number)
AVERAGE = _Form("{:.4g}".format, _read_number)
COSINE = _Form("{:.6f}".format, _read_signed_number)
PRICE = _Form("{:g}".format, _read_number)
MODEL_FIELDS = (
    _StoredField("model", "model", TEXT),
    _StoredField("source", "source", TEXT),
    _StoredField("revision", "revision", TEXT),
    _StoredField("sha256", "sha256", TEXT),
    _StoredField("fingerprint", "fingerprint", TEXT),
    _StoredField("words", "word_stemming", TEXT),
    _StoredField("call", "call", TEXT),
    _StoredField("version", "version", TEXT),
)
DIMENSIONS_FIELD = _StoredField("dimensions", "dimensions", COUNT)
PRICE_FIELDS = (
    _StoredField("usd_per_million_tokens", "usd_per_million_tokens", PRICE),
    _StoredField("usd_per_thousand_searches", "usd_per_thousand_searches", PRICE),
    _StoredField("price_source", "source", TEXT),
)
DEPTH_KEY = "depth"
FIRST_ORIGIN_FIELDS = (
    _StoredField("tools", "tools", TEXT),
    _StoredField("server", "server", TEXT),
    _StoredField("tool", "tool", TEXT),
)
URL_FIELD = _StoredField("url", "url", TEXT)
RUN_FIELDS = (
    _StoredField("run", "run", TEXT),
    _StoredField("sha256", "sha256", TEXT),
)
ANSWERED_FIELD = _StoredField("answered_at", "answered_at", TEXT)
ORIGIN_FIELDS = (*FIRST_ORIGIN_FIELDS, URL_FIELD, *RUN_FIELDS, ANSWERED_FIELD)
REDUCTION_FIELDS = (
    _StoredField("derived_from", "derived_from", TEXT),
    _StoredField("cut_from", "cut_from", COUNT),
    _StoredField("least_cosine_with_asked", "least_cosine", COSINE),
    _StoredField("store", "store", TEXT),
    _StoredField("search", "search", TEXT),
    _StoredField("quantization", "quantization", TEXT),
)
COLLECTION_FIELDS = (
    _StoredField("server", "server", TEXT),
    _StoredField("points", "points", COUNT),
    _StoredField("indexed_points", "indexed_points", COUNT),
    _StoredField("optimizer", "optimizer", TEXT),
    _StoredField("indexing_threshold_kb", "indexing_threshold_kb", COUNT),
    _StoredField("full_scan_threshold_kb", "full_scan_threshold_kb", COUNT),
)
SIZE_FIELDS = (
    DIMENSIONS_FIELD,
    _StoredField("vectors", "texts", COUNT),
    _StoredField("vector_bytes", "size_bytes", BYTES),
    _StoredField("nonzeros_per_text", "nonzeros_per_text", AVERAGE),
    _StoredField("nonzeros_per_query", "nonzeros_per_query", AVERAGE),
    _StoredField("tokens_per_text", "tokens_per_text", AVERAGE),
    _StoredField("tokens_per_query", "tokens_per_query", AVERAGE),
)
CONDITIONS_FIELD = _StoredField("filter", "conditions", TEXT)
ANSWER_FIELDS = (
    _StoredField("passages", "passages", TEXT),
    _StoredField("trials", "trials", COUNT),
    _StoredField("answers_compared", "compared", COUNT),
    _StoredField("answers_changed", "changed", COUNT),
    _StoredField("not_timed", "not_timed", TEXT),
)
KEYS_BEHIND_SETTINGS = {
    stored.key
    for stored in (
        *PRICE_FIELDS,
        URL_FIELD,
        ANSWERED_FIELD,
        *REDUCTION_FIELDS,
        *SIZE_FIELDS[1:],
        CONDITIONS_FIELD,
        *ANSWER_FIELDS,
    )
}
"""Keys that come after the settings of a model: the first of them ends the settings.
`server`, `sha256` and `dimensions` are not, since each is a key of two fields."""


def stored_facts(facts: RetrieverFacts) -> dict[str, str]:
    """Return facts as a manifest has them, in its order.

    >>> price = Price(0.02, "a page", 0)
    >>> model = ModelFacts(model="m", settings=(Fact("region", "eu"),), price=price)
    >>> stored = stored_facts(RetrieverFacts(model=model))
    >>> stored["usd_per_million_tokens"], [*stored][:2]
    ('0.02', ['model', 'region'])
    >>> parse_facts(stored).model == model
    True
    """
    return dict(_fact_texts(facts))


def _fact_texts(facts: RetrieverFacts) -> Iterator[Fact]:
    yield from _model_texts(facts.model)
    yield from _texts(facts.origin, ORIGIN_FIELDS)
    yield from _texts(facts.vectors, REDUCTION_FIELDS)
    yield from _texts(facts.vectors.collection, COLLECTION_FIELDS)
    yield from facts.vectors.collection.other
    yield from _texts(facts.vectors, SIZE_FIELDS)
    yield from _texts(facts, (CONDITIONS_FIELD,))
    if facts.reranker is not None:
        for key, text in _model_texts(facts.reranker.model):
            yield Fact(f"{RERANKER_PREFIX}{key}", text)
        if facts.reranker.depth is not None:
            yield Fact(f"{RERANKER_PREFIX}{DEPTH_KEY}", str(facts.reranker.depth))
    yield from facts.other
    yield from _texts(facts.answers, ANSWER_FIELDS)


def stored_model_facts(facts: ModelFacts) -> dict[str, str]:
    """Return a model's facts as a manifest has them."""
    return dict(_model_texts(facts))


def _model_texts(model: ModelFacts) -> Iterator[Fact]:
    yield from _texts(model, MODEL_FIELDS)
    yield from model.settings
    yield from _texts(model, (DIMENSIONS_FIELD,))
    price = model.price
    if price is not None:
        per_tokens, per_searches, source = PRICE_FIELDS
        text = per_tokens.form.write(price.usd_per_million_tokens)
        yield Fact(per_tokens.key, text)
        if price.usd_per_thousand_searches:
            yield from _texts(price, (per_searches,))
        yield from _texts(price, (source,))


def _texts(record: object, fields: Sequence[_StoredField]) -> Iterator[Fact]:
    """Yield the fields of a record that have a content, under their keys."""
    for stored in fields:
        content = getattr(record, stored.field)
        if content not in ("", None):
            yield Fact(stored.key, stored.form.write(content))


def parse_facts(stored: Mapping[str, str]) -> RetrieverFacts:
    """Return the facts in a manifest, or those of a retriever of another package.

    Unknown keys before a price, vectors and conditions are a model's settings.

    Raises:
        ValueError: a fact is no text, or a text that should be a number is not one.
    """
    _check_texts(stored)
    # Some keys belong to two fields, and the field that takes a text first has it:
    # `sha256` is a run's if there is a run, else a model's; `server` is an MCP server
    # among the first texts, a store's engine among the later ones.
    first, later = _StoredTexts(stored).split_at_settings()
    reranker = _take_reranker(later)
    run_fields = RUN_FIELDS if "run" in stored else ()
    origin_fields = first.take(*FIRST_ORIGIN_FIELDS, *run_fields)
    origin_fields |= later.take(URL_FIELD, *run_fields, ANSWERED_FIELD)
    # From a copy: the model takes the same text. Of a model and vectors that both have
    # dimensions, the manifest has one text, at the model's place.
    first_dimensions = _StoredTexts(first.remaining()).take(DIMENSIONS_FIELD)
    model = _take_model(first, later)
    vectors = VectorFacts(
        **later.take(*REDUCTION_FIELDS, *SIZE_FIELDS),
        collection=CollectionFacts(**later.take(*COLLECTION_FIELDS)),
    )
    if vectors != VectorFacts() and vectors.dimensions is None:
        vectors = replace(vectors, **first_dimensions)
    conditions = later.take(CONDITIONS_FIELD).get(CONDITIONS_FIELD.field, "")
    return RetrieverFacts(
        model=model,
        origin=Origin(**origin_fields),
        vectors=vectors,
        conditions=conditions,
        reranker=reranker,
        answers=AnswerFacts(**later.take(*ANSWER_FIELDS)),
        other=later.remaining_facts(),
    )


def parse_model_facts(stored: Mapping[str, str]) -> ModelFacts:
    """Return the facts of a model of another package.

    Raises:
        ValueError: a text that should be a number is not one.
    """
    _check_texts(stored)
    first, later = _StoredTexts(stored).split_at_settings()
    model = _take_model(first, later)
    return replace(model, settings=(*model.settings, *later.remaining_facts()))


class _StoredTexts:
    """Texts under their keys; reading a text removes it."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def take(self, *fields: _StoredField) -> dict[str, Any]:
        """Remove the texts of fields, and return the contents that there are."""
        contents: dict[str, Any] = {}
        for stored in fields:
            content = stored.form.parse(self._texts.get(stored.key, ""))
            if content not in ("", None):
                contents[stored.field] = content
                del self._texts[stored.key]
        return contents

    def take_of_reranker(self) -> _StoredTexts:
        """Remove the texts of a reranker, and return them under their own keys."""
        keys = [key for key in self._texts if key.startswith(RERANKER_PREFIX)]
        return _StoredTexts(
            {key.removeprefix(RERANKER_PREFIX): self._texts.pop(key) for key in keys}
        )

    def split_at_settings(self) -> _SplitFacts:
        """Return the texts up to the settings of a model, and those behind them."""
        count = 0
        for key in self._texts:
            if key in KEYS_BEHIND_SETTINGS or key.startswith(RERANKER_PREFIX):
                break
            count += 1
        texts = self._texts.items()
        first = _StoredTexts(dict(islice(texts, count)))
        return _SplitFacts(first, _StoredTexts(dict(islice(texts, count, None))))

    def remaining(self) -> dict[str, str]:
        """Return the texts that were not taken."""
        return dict(self._texts)

    def remaining_facts(self) -> tuple[Fact, ...]:
        """Return the texts that were not taken, each with its key."""
        return tuple(starmap(Fact, self._texts.items()))


class _SplitFacts(NamedTuple):
    """Stored texts in two parts."""

    first: _StoredTexts
    """Texts up to the last setting of a model."""
    later: _StoredTexts
    """Texts from the first key of KEYS_BEHIND_SETTINGS, or of a reranker, on."""


def _take_model(first: _StoredTexts, later: _StoredTexts) -> ModelFacts:
    """Return a model; the texts in `first` that no field takes are its settings."""
    per_tokens, per_searches, source = PRICE_FIELDS
    price = None
    price_fields = later.take(per_tokens)
    if price_fields:
        price_fields.setdefault(source.field, "")
        price = Price(**{**price_fields, **later.take(source, per_searches)})
    identity = {**later.take(*MODEL_FIELDS), **first.take(*MODEL_FIELDS)}
    dimensions = first.take(DIMENSIONS_FIELD)
    settings = first.remaining_facts()
    return ModelFacts(**identity, **dimensions, price=price, settings=settings)


def _take_reranker(later: _StoredTexts) -> RerankerFacts | None:
    """Return the reranker, and remove its texts; None if there is none."""
    stored = later.take_of_reranker()
    if not stored.remaining():
        return None
    first, others = stored.split_at_settings()
    depth = parse_count(stored.remaining().get(DEPTH_KEY, ""))
    model = _take_model(first, others)
    settings = [
        fact
        for fact in others.remaining_facts()
        if depth is None or fact.key != DEPTH_KEY
    ]
    model = replace(model, settings=(*model.settings, *settings))
    return RerankerFacts(model=model, depth=depth)


def _check_texts(stored: Mapping[str, str]) -> None:
    """Refuse facts that are no texts, or not the numbers that they should be.

    Raises:
        ValueError: there is one.
    """
    for key, text in stored.items():
        if not isinstance(text, str):
            raise ValueError(f"{key} is {text!r:.40}, not a text")
        if key in COUNT_KEYS and parse_count(text) is None:
            raise ValueError(f"{key} is {text!r:.40}, not a whole number")
        if key.endswith(NUMBER_KEY_ENDS) and _read_number(text) is None:
            raise ValueError(f"{key} is {text!r:.40}, not a number from 0")
