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
"""What a column may be called, in any case and with any of space, hyphen and underscore between its words, where the
experiment does not declare it; the first one that is there counts."""
LOCATION_COLUMNS = ("file", "filename", "path", "url", "source")
"""Names documents where no other column does; else it says where something is from."""
CLICKS_COLUMN = "clicks"
"""How often a document was clicked: grades only where the experiment says so."""
LABEL_KINDS = ("label_document", "relevant", "grade", "contexts")
DOCUMENT_NAMING_KINDS = ("label_document", "relevant", "contexts")
"""What names the documents of a label."""
DOCUMENT_KINDS = ("document_id", "title", "text")
UNLABELLED_QUERY_KINDS = (
    "query_id",
    "query",
    "label_query",
    "reference",
    "claims",
    "history",
)
"""What a row of queries holds if the labels are in a table of their own."""
QUERY_KINDS = (*UNLABELLED_QUERY_KINDS, *LABEL_KINDS)
FIELDS_KIND = "fields"
"""Declares the columns, with commas between, that hold no labels whatever they are called."""
COLUMN_KINDS = (*USUAL_COLUMN_NAMES, FIELDS_KIND)


@lru_cache(maxsize=1024)
def usual_column(kind: str, names: tuple[str, ...]) -> str | None:
    """Return the column that holds what is asked for, by the usual names; None where there is none.

    >>> usual_column("query", ("Query", "Count")), usual_column("query", ("Query", "query")), usual_column("query", ("a",))
    ('Query', 'query', None)
    """
    if exact := next(
        (name for name in USUAL_COLUMN_NAMES[kind] if name in names), None
    ):
        return exact
    there = {normalised_name(str(name)): name for name in reversed(names)}
    return next(
        (there[name] for name in NORMALISED_COLUMN_NAMES[kind] if name in there), None
    )


@lru_cache(maxsize=1024)
def normalised_name(name: str) -> str:
    """A name without its case and the separators of its words.

    >>> normalised_name("Doc ID"), normalised_name("relevant-docs")
    ('docid', 'relevantdocs')
    """
    return re.sub(r"[\s_-]+", "", name.casefold())


NORMALISED_COLUMN_NAMES = {
    kind: tuple(map(normalised_name, names))
    for kind, names in USUAL_COLUMN_NAMES.items()
}
