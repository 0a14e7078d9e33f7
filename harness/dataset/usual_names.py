"""Recognised names of columns."""

import re
from functools import lru_cache

EXCLUDED_NOUNS = (
    "ids",
    "id",
    "doc_ids",
    "doc_id",
    "document_ids",
    "document_id",
    "passage_ids",
    "passage_id",
    "docs",
    "doc",
    "documents",
    "document",
    "passages",
    "passage",
    "chunks",
    "pages",
    "files",
    "sources",
    "urls",
)
"""What follows a verb in the usual names of columns of documents to leave out."""
USUAL_COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "document_id": (
        "_id",
        "id",
        "doc_id",
        "docid",
        "document_id",
        "docno",
        "corpus-id",
        "corpus_id",
        "pid",
    ),
    "title": ("title", "heading"),
    "text": (
        "text",
        "contents",
        "content",
        "body",
        "document",
        "passage",
        "page_content",
    ),
    "query_id": ("_id", "id", "query-id", "query_id", "qid"),
    "query": (
        "text",
        "query",
        "query_text",
        "question",
        "user_input",
        "search_term",
        "search term",
        "search_query",
        "search query",
        "keyword",
        "keywords",
        "q",
    ),
    "label_query": ("query-id", "query_id", "qid"),
    "label_document": (
        "corpus-id",
        "corpus_id",
        "doc_id",
        "document_id",
        "docno",
        "pid",
        "passage_id",
        "clicked_doc_id",
        "clicked_id",
        "doc",
        "document",
        "file",
        "file_name",
        "path",
        "url",
        "source",
    ),
    "grade": (
        "score",
        "grade",
        "relevance",
        "rel",
        "label",
        "rating",
        "judgment",
        "judgement",
        "gain",
    ),
    "reference": ("reference", "reference_answer", "generation_gt"),
    "claims": ("claims",),
    "history": ("history", "chat_history"),
    "exclude": tuple(
        f"{verb}_{noun}"
        for verb in ("excluded", "exclude", "ignored", "ignore", "skipped", "skip")
        for noun in EXCLUDED_NOUNS
    ),
    "relevant": (
        "relevant_documents",
        "ratings",
        "relevant_docs",
        "relevant",
        "relevant_ids",
        "relevant_doc_ids",
        "expected_doc_ids",
        "expected_documents",
        "reference_context_ids",
        "positives",
        "positive",
        "gold_ids",
        "gold_docs",
        "gold_doc_ids",
        "gold_documents",
        "expected_docs",
        "expected_ids",
        "expected_document_ids",
        "ground_truth_ids",
        "golden_docs",
    ),
    "contexts": ("reference_contexts",),
    "spans": ("spans",),
}
"""Kind of column -> its usual names, for columns that are not declared.

The first name that a table has counts. Case does not count, nor does the separator of
words: a space, a hyphen, an underscore or nothing.
"""
LOCATION_COLUMNS = ("file", "filename", "path", "url", "source")
"""Columns that identify a document if no other column does.

If another column does, they are the source of a text.
"""
CLICKS_COLUMN = "clicks"
"""The clicks on a document: grades only if the experiment says so."""
NEUTRAL_DOCUMENT_NAMES = frozenset(
    (
        "corpusid",
        "docid",
        "documentid",
        "docno",
        "pid",
        "passageid",
        "doc",
        "document",
        "filename",
        *LOCATION_COLUMNS,
    )
)
"""Names of columns of documents that may be labels, or what a system returned.

They have labels in a table of labels, or beside a column of grades.
"""
NEUTRAL_LIST_NAMES = ("docids", "documentids")
"""Names of lists of documents that may be labels, or what a system returned."""
DRAFT_COLUMNS = frozenset(("style", "need", "origin", "document_id"))
"""The columns of a query that a model wrote for a document, and a person kept."""
SCORE_NAME = "score"
"""A grade in a table of labels; anywhere else a system may have given it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LABEL_WORDS = _words(
    """
    relevant gold golden expected ground truth groundtruth gt reference
    references positive positives qrel qrels correct target targets judgment
    judgments judgement judgements rating ratings grade grades clicked
    """
)
"""Words of names that say that a column has labels; no other word says so."""
DOCUMENT_WORDS = _words(
    """
    id ids doc docs document documents context contexts passage passages chunk
    chunks file files page pages source sources url urls path paths article
    articles retrieval
    """
)
"""Other words that such a name may have."""
ANSWER_WORDS = _words(
    """
    expected ground truth groundtruth golden reference references correct
    target targets rating ratings grade grades judgment judgement context
    contexts
    """
)
"""Words that the name of a column of answers, or of numbers, may have as well."""
JUDGING_WORDS = _words(
    """
    relevant relevance relevancy rel grade grades rating ratings label labels score
    scores gain judgment judgments judgement judgements judged correct positive gold
    golden supporting selected useful usefulness helpful helpfulness
    """
)
"""Words of names that say that a number or a flag judges a document."""
LOCATING_WORDS = _words(
    """
    page pages id ids index rank start end count num number sentence sentences line
    lines chunk offset position length text title name comment comments url
    """
)
"""Words of names that say where something is, or how much: it judges nothing."""
EXCLUDING_WORDS = _words(
    """
    exclude excluded excludes excluding exclusion exclusions ignore ignored ignores
    skip skipped skips blocked banned forbidden without
    """
)
"""Words of names that say that documents are left out."""
PLURAL_IN_BRACKETS = re.compile(r"\((?:s|es)\)")
"""The ending of a name such as "document(s)"."""
WORD_PATTERN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
"""A word of a name: capitals, a capitalised or lower-case word, or digits."""
LABEL_KINDS = ("label_document", "relevant", "grade", "contexts")
"""Kinds of columns of which a label is made, besides its query."""
DOCUMENT_NAMING_KINDS = ("label_document", "relevant", "contexts")
"""Kinds of columns that identify the documents of a label."""
DOCUMENT_ID_KINDS = ("label_document", "relevant")
"""The kinds that name a document by its id."""
DOCUMENT_KINDS = ("document_id", "title", "text")
"""Kinds of columns of documents."""
UNLABELLED_QUERY_KINDS = (
    "query_id",
    "query",
    "label_query",
    "reference",
    "claims",
    "history",
    "exclude",
)
"""Kinds of columns of queries if the labels are in another table."""
QUERY_KINDS = (*UNLABELLED_QUERY_KINDS, *LABEL_KINDS, "spans")
"""Kinds of columns of queries if their rows have the labels, too."""
FIELDS_KIND = "fields"
"""Declares columns, with commas between, that hold no labels despite their names."""
KIND_ALIASES = {"label": "label_document"}
"""Other names of kinds."""
COLUMN_KINDS = (*USUAL_COLUMN_NAMES, FIELDS_KIND)


@lru_cache(maxsize=1024)
def usual_column(kind: str, names: tuple[str, ...]) -> str | None:
    """Return the column of a kind, by its usual names; None if there is none.

    >>> usual_column("query", ("Query", "Count"))
    'Query'
    >>> usual_column("query", ("Query", "query")), usual_column("query", ("a",))
    ('query', None)
    """
    for usual_name in USUAL_COLUMN_NAMES[kind]:
        if usual_name in names:
            return usual_name
    # Of two columns that differ only in case or separators, the first one counts.
    columns = {normalised_name(str(name)): name for name in reversed(names)}
    for usual_name in NORMALISED_COLUMN_NAMES[kind]:
        if usual_name in columns:
            return columns[usual_name]
    return None


@lru_cache(maxsize=1024)
def is_label_name(name: str) -> bool:
    """Whether the name of a column says that it has labels.

    >>> is_label_name("gold_doc_ids"), is_label_name("Expected document(s)")
    (True, True)
    >>> is_label_name("retrieved_relevant_ids"), is_label_name("correct_answer")
    (False, False)
    >>> is_label_name("groundTruthIDs"), is_label_name("sources")
    (True, False)
    """
    words = words_of_name(name)
    return bool(words & LABEL_WORDS) and words <= LABEL_WORDS | DOCUMENT_WORDS


def names_documents(name: str) -> bool:
    """Whether the name of a column says that it has labels, and cannot mean answers.

    >>> names_documents("gold_ids"), names_documents("expected")
    (True, False)
    """
    return is_label_name(name) and not words_of_name(name) <= ANSWER_WORDS


def judges_documents(name: str) -> bool:
    """Whether the name of a number, or a flag, says that it judges a document.

    >>> judges_documents("query_relevance_label"), judges_documents("page")
    (True, False)
    >>> judges_documents("relevant_page"), judges_documents("num_ratings")
    (False, False)
    """
    words = words_of_name(name)
    return not JUDGING_WORDS.isdisjoint(words) and LOCATING_WORDS.isdisjoint(words)


def may_exclude(name: str) -> bool:
    """Whether the name of a column says that it has documents to leave out.

    >>> may_exclude("ignore"), may_exclude("gold_ids")
    (True, False)
    """
    return not EXCLUDING_WORDS.isdisjoint(words_of_name(name))


def words_of_name(name: str) -> set[str]:
    """Return the words of a name, in small letters.

    >>> sorted(words_of_name("goldDoc_IDs (s)"))
    ['doc', 'gold', 'ids']
    """
    singular_name = PLURAL_IN_BRACKETS.sub("", name).replace("IDs", "Ids")
    return {word.casefold() for word in WORD_PATTERN.findall(singular_name)}


@lru_cache(maxsize=1024)
def normalised_name(name: str) -> str:
    """Return a name without its case and the separators of its words.

    >>> normalised_name("Doc ID"), normalised_name("relevant-docs")
    ('docid', 'relevantdocs')
    """
    return re.sub(r"[\s_-]+", "", name.casefold())


NORMALISED_COLUMN_NAMES = {
    kind: tuple(map(normalised_name, names))
    for kind, names in USUAL_COLUMN_NAMES.items()
}
