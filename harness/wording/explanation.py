"""Where a retriever loses, in words.

Each finding of `evaluation.explain` has one sentence; a suggestion has a line, with the
page of the documentation.
"""

from collections.abc import Callable, Mapping

from harness.english import (
    count_of,
    count_queries,
    p_relation,
    p_text,
    percent_text,
    possessive,
    with_minus_sign,
)
from harness.evaluation.explain import Explanation, Silence, SliceFinding
from harness.evaluation.property_slices import Condition, SliceName, limit_form
from harness.evaluation.suggestion import Suggestion
from harness.records import (
    DIGITS,
    DOCUMENT_LENGTH,
    LABELS,
    QUERY_LENGTH,
    QUOTATION_MARKS,
    RAREST_WORD,
    SCRIPT,
    SHARED_WORDS,
    TRUNCATED_BY,
    QueryProperty,
    value_text,
)
from harness.wording.verdicts import MODEL_ALONE_REASON

EXPLAIN_PAGE = "docs/how-to/explain.md"
"""The page of the documentation, with a heading for each suggestion."""
MAX_VALUE_LENGTH = 60
"""Characters of a field's value in a sentence."""
SUGGESTION_LINES: Mapping[Suggestion, str] = {
    Suggestion.CHUNK: "What may help: cut documents into chunks",
    Suggestion.DENSE: "What may help: a dense or hybrid retriever",
    Suggestion.LEXICAL: "What may help: bm25 or a hybrid retriever",
    Suggestion.LONG_QUERIES: "What may help with long queries: a fusion and a reranker",
}
SUGGESTION_ANCHORS: Mapping[Suggestion, str] = {
    Suggestion.CHUNK: "truncated-documents",
    Suggestion.DENSE: "few-shared-words",
    Suggestion.LEXICAL: "rare-words-and-numbers",
    Suggestion.LONG_QUERIES: "long-queries",
}
SILENCE_SENTENCES: Mapping[Silence, str] = {
    Silence.NOTHING_FOUND: "no property explains the difference",
    Silence.NO_SLICES: (
        "no property divides the queries into two parts of ten or more: "
        "nothing was tested"
    ),
    Silence.MODEL_ALONE: MODEL_ALONE_REASON,
    Silence.ALPHA_SPENT: "alpha is spent: the planned looks are over",
}


def explanation_sentences(explanation: Explanation) -> list[str]:
    """Return a sentence for each slice, strongest first.

    Without a slice, one sentence says why.
    """
    if explanation.silence is not None:
        return [silence_sentence(explanation)]
    return [finding_sentence(finding, explanation) for finding in explanation.findings]


def silence_sentence(explanation: Explanation) -> str:
    """Return why no slice is named."""
    silence = explanation.silence or Silence.NOTHING_FOUND
    sentence = SILENCE_SENTENCES[silence]
    if silence is not Silence.NOTHING_FOUND:
        return f"{explanation.a} and {explanation.b}: {sentence}."
    tested = count_of(explanation.tested, "slice")
    queries = count_queries(explanation.n)
    return (
        f"{explanation.a} and {explanation.b}: {sentence} "
        f"({tested} of {queries} tested)."
    )


def finding_sentence(finding: SliceFinding, explanation: Explanation) -> str:
    """Return where a retriever loses, by how much, and how sure that is."""
    phrase = slice_phrase(finding.name)
    lower = f"{abs(finding.difference):.3f} lower in {explanation.measure}"
    others = _other_words(finding)
    evidence = [f"p {p_relation(p_text(finding.p_adjusted))}"]
    gap = with_minus_sign(f"{finding.gap:+z.3f}")
    if finding.ci_low is not None and finding.ci_high is not None:
        level = f"{percent_text(explanation.level)} % interval"
        ends = with_minus_sign(f"{finding.ci_low:+.3f} to {finding.ci_high:+.3f}")
        gap = f"{gap}, {level} {ends}"
    if finding.confirmed is not None:
        adverb = "" if finding.confirmed else "not "
        evidence.append(f"{adverb}confirmed on the other half")
    return (
        f"{finding.loser} loses to {finding.winner} where {phrase}: "
        f"{count_queries(finding.queries)}, {lower}; {others} "
        f"(gap {gap}; {', '.join(evidence)})."
    )


def _other_words(finding: SliceFinding) -> str:
    """Return the difference on the other queries."""
    others = f"on the other {finding.other_queries:,}"
    difference = f"{abs(finding.other_difference):.3f}"
    if not float(difference):
        return f"equal {others}"
    direction = "lower" if finding.other_difference < 0 else "higher"
    return f"{difference} {direction} {others}"


def suggestion_line(suggestion: Suggestion) -> str:
    """Return what to try, with the page that says more.

    >>> suggestion_line(Suggestion.CHUNK).partition(" (")[0]
    'What may help: cut documents into chunks'
    """
    return f"{SUGGESTION_LINES[suggestion]} ({suggestion_link(suggestion)})"


def suggestion_link(suggestion: Suggestion) -> str:
    """Return the page of the documentation about a suggestion."""
    return f"{EXPLAIN_PAGE}#{SUGGESTION_ANCHORS[suggestion]}"


def slice_phrase(name: SliceName) -> str:
    """Return what the queries of a slice have in common, after "where".

    >>> slice_phrase(SliceName("shared words", Condition.AT_MOST, 0.5))
    'the query shares fewer words with its document (at most 50 % of them)'
    >>> slice_phrase(SliceName("digits", Condition.IS, False))
    'the query has no digit'
    >>> slice_phrase(SliceName("field type", Condition.IS, "fact"))
    "the field type is 'fact'"
    """
    if name.declared_field:
        return f"the field {name.declared_field} {_condition_words(name)}"
    if name.property_name.startswith(TRUNCATED_BY):
        retriever = possessive(name.property_name.removeprefix(TRUNCATED_BY))
        if name.value:
            return f"{retriever} model read only the start of every relevant document"
        return f"{retriever} model read a relevant document to its end"
    return PHRASES[name.property_name](name)


def _condition_words(name: SliceName) -> str:
    """Return a condition on a single value in words, such as "is 'faq'"."""
    if isinstance(name.value, str):
        verb = "is" if name.condition is Condition.IS else "is not"
        return f"{verb} {_shorten(name.value)!r}"
    words = "at most" if name.condition is Condition.AT_MOST else "above"
    return f"is {words} {_number_text(name)}"


def _shorten(text: str) -> str:
    """Return the beginning of a long text."""
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    return f"{text[: MAX_VALUE_LENGTH - 1]}…"


def _number_text(name: SliceName) -> str:
    limit = float(name.value)
    return f"{limit:,{limit_form(limit)}}"


def _limit_words(name: SliceName) -> str:
    words = "at most" if name.condition is Condition.AT_MOST else "more than"
    return f"{words} {_number_text(name)}"


def _length_phrase(name: SliceName) -> str:
    adjective = "shorter" if name.condition is Condition.AT_MOST else "longer"
    return f"the query is {adjective} ({_limit_words(name)} characters)"


def _document_phrase(name: SliceName) -> str:
    adjective = "shorter" if name.condition is Condition.AT_MOST else "longer"
    limit = f"{_limit_words(name)} characters on average"
    return f"the query's relevant documents are {adjective} ({limit})"


def _shared_phrase(name: SliceName) -> str:
    is_low = name.condition is Condition.AT_MOST
    if not name.value:
        amount = "no word" if is_low else "a word"
        return f"the query shares {amount} with its document"
    amount = "fewer words" if is_low else "more words"
    limit = "at most" if is_low else "more than"
    percent = percent_text(float(name.value))
    return f"the query shares {amount} with its document ({limit} {percent} % of them)"


def _rarity_phrase(name: SliceName) -> str:
    is_low = name.condition is Condition.AT_MOST
    if not name.value:
        if is_low:
            return "the query has a word that no document has"
        return "every word of the query is in a document"
    documents = count_of(int(float(name.value)), "document")
    if is_low:
        return f"the query's rarest word is rarer (in at most {documents})"
    return f"the query's rarest word is less rare (in more than {documents})"


def _labels_phrase(name: SliceName) -> str:
    documents = count_of(int(float(name.value)), "relevant document")
    limit = "at most" if name.condition is Condition.AT_MOST else "more than"
    return f"the query has {limit} {documents}"


def _digits_phrase(name: SliceName) -> str:
    return "the query has a digit" if name.value else "the query has no digit"


def _marks_phrase(name: SliceName) -> str:
    amount = "" if name.value else "no "
    return f"the query has {amount}quotation marks"


def _script_phrase(name: SliceName) -> str:
    verb = "is" if name.condition is Condition.IS else "is not"
    return f"the query's script {verb} {name.value}"


PHRASES: Mapping[str, Callable[[SliceName], str]] = {
    QUERY_LENGTH: _length_phrase,
    DIGITS: _digits_phrase,
    QUOTATION_MARKS: _marks_phrase,
    SCRIPT: _script_phrase,
    SHARED_WORDS: _shared_phrase,
    RAREST_WORD: _rarity_phrase,
    DOCUMENT_LENGTH: _document_phrase,
    LABELS: _labels_phrase,
}
"""Property -> its phrase after "where"."""


def property_text(row: QueryProperty) -> str:
    """Return a property of one query, as its card shows it.

    >>> property_text(QueryProperty("q", "shared words", 0.5))
    'shared words: 50 %'
    >>> property_text(QueryProperty("q", "query length", 39.0))
    'query length: 39 characters'
    >>> property_text(QueryProperty("q", "digits", False))
    'digits: no'
    """
    if row.name == SHARED_WORDS:
        return f"{row.name}: {percent_text(float(row.value))} %"
    if row.name == RAREST_WORD:
        count = round(float(row.value))
        documents = count_of(count, "document") if count else "no document"
        return f"{row.name}: in {documents}"
    if row.name in (QUERY_LENGTH, DOCUMENT_LENGTH):
        return f"{row.name}: {count_of(round(float(row.value)), 'character')}"
    if isinstance(row.value, float):
        return f"{row.name}: {row.value:,.0f}"
    return f"{row.name}: {value_text(row.value)}"
