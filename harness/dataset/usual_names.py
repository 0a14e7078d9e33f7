"""Recognised names of columns."""

import re
from functools import lru_cache

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
    "relevant": (
        "relevant_documents",
        "ratings",
        "relevant_docs",
        "relevant",
        "relevant_ids",
        "relevant_doc_ids",
        "doc_ids",
        "document_ids",
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
}
"""Kind of column -> its usual names, for columns that are not declared.

The first name that a table has counts. Case does not count, nor does the separator of
words: a space, a hyphen, an underscore or nothing.
"""
LOCATION_COLUMNS = ("file", "filename", "path", "url", "source")
"""Columns that identify a document if no other column does.

Else they say where something is from.
"""
CLICKS_COLUMN = "clicks"
"""The clicks on a document: grades only if the experiment says so."""
LABEL_KINDS = ("label_document", "relevant", "grade", "contexts")
DOCUMENT_NAMING_KINDS = ("label_document", "relevant", "contexts")
"""Kinds of columns that identify the documents of a label."""
DOCUMENT_ID_KINDS = ("label_document", "relevant")
"""Those of them that do so by an id."""
DOCUMENT_KINDS = ("document_id", "title", "text")
UNLABELLED_QUERY_KINDS = (
    "query_id",
    "query",
    "label_query",
    "reference",
    "claims",
    "history",
)
"""Kinds of columns of queries if the labels are in another table."""
QUERY_KINDS = (*UNLABELLED_QUERY_KINDS, *LABEL_KINDS)
FIELDS_KIND = "fields"
"""Declares columns, with commas between, that hold no labels despite their names."""
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
