"""Rows inside objects of other shapes.

In JSON rows are in a list, under one key of an object, or in a reply to a search:
Elasticsearch and OpenSearch have a document under `_source`, and in a bulk request on
the line after its id; RRE (and Quepid, which exports in its form) has queries in groups
that share their ratings. The last question of a conversation is a query.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import message_role

BULK_ACTIONS = ("index", "create")
"""The actions of a bulk request for the document on the next line."""
BULK_OPTIONS = frozenset(
    (
        "routing",
        "version",
        "version_type",
        "if_seq_no",
        "if_primary_term",
        "pipeline",
        "dynamic_templates",
        "require_alias",
        "require_data_stream",
        "list_executed_pipelines",
    )
)
"""Keys of an action of Elasticsearch's bulk API that do not begin with "_"."""
KEYS_WITHOUT_TEXT = (
    "fields",
    "type",
    "operator",
    "minimum_should_match",
    "fuzziness",
    "analyzer",
    "filter",
    "index",
)
"""Keys of a request whose values are not searched for."""
MESSAGE_KEYS = ("turns", "messages", "user_input")
"""Keys of a conversation: its last question is the query."""
ASKING_ROLES = ("user", "human")
SHAPED_KEYS = frozenset(
    ("ratings", "_source", "queries", "query_groups", "placeholders", *MESSAGE_KEYS)
)
"""An object that contains other rows has at least one of these keys."""
QUERY_PLACEHOLDERS = ("$query", "query", "$q", "q")


class JsonRows(NamedTuple):
    """The rows of a file of JSON or YAML."""

    key: str
    """The key of their list; empty if the file is a list."""
    rows: list[Any]


class BulkAction(NamedTuple):
    """The action of a bulk request, for the document on the next line."""

    document_id: Any
    """The document's id; None if the action gives none."""


class RatedQuery(NamedTuple):
    """A query with ratings of Elasticsearch's `_rank_eval`."""

    id: Any
    """The request's id; None if it has none."""
    query: str | None
    ratings: list[Any]

    def as_row(self, location: SourceLocation) -> Row:
        """Return the query under the usual names of columns."""
        cells = {"query": self.query, "relevant": self.ratings}
        if self.id is not None:
            cells = {"query_id": self.id, **cells}
        return Row(location, cells)


def rows_in_json(content: Any) -> JsonRows | None:
    """Return the rows of parsed JSON or YAML.

    That is a list as it is, else the only list of objects in an object; None if there
    is not exactly one.

    >>> rows_in_json({"version": 1, "examples": [{"input": "a"}]})
    JsonRows(key='examples', rows=[{'input': 'a'}])
    >>> rows_in_json({"hits": {"total": 1, "hits": [{"_id": "a"}]}})
    JsonRows(key='hits.hits', rows=[{'_id': 'a'}])
    >>> rows_in_json({"a": [{}], "b": [{}]}) is None
    True
    """
    if isinstance(content, list):
        return JsonRows("", content)
    if not isinstance(content, dict):
        return None
    prefix = ""
    if isinstance(content.get("hits"), dict):
        prefix = "hits."
        content = content["hits"]
    keys = [key for key, rows in content.items() if _has_objects(rows)]
    if len(keys) != 1:
        return None
    return JsonRows(f"{prefix}{keys[0]}", content[keys[0]])


def _has_objects(rows: Any) -> bool:
    return isinstance(rows, list) and any(isinstance(row, dict) for row in rows)


def bulk_action(row: Row) -> BulkAction | None:
    """Return the action of a bulk request; None for any other row.

    Other rows may have a column `index`, but with other keys in its object.

    >>> location = SourceLocation("bulk.jsonl")
    >>> bulk_action(Row(location, {"index": {"_index": "help", "_id": "7"}}))
    BulkAction(document_id='7')
    >>> bulk_action(Row(location, {"index": 3, "text": "a"})) is None
    True
    >>> bulk_action(Row(location, {"index": {"price": 3}})) is None
    True
    """
    if len(row.cells) != 1:
        return None
    action_name, action = next(iter(row.cells.items()))
    if action_name not in BULK_ACTIONS or not isinstance(action, dict):
        return None
    if not all(key.startswith("_") or key in BULK_OPTIONS for key in action):
        return None
    return BulkAction(action.get("_id"))


def rows_of_object(row: Row) -> Iterator[Row]:
    """Yield the rows in an object of JSON.

    That is the object itself, the document of a hit, the last question of a
    conversation, or the queries of a group of ratings. Of an object that holds one of
    these, its other keys are left out, but for those of a conversation.

    >>> location = SourceLocation("hits.jsonl")
    >>> hit = Row(location, {"_id": "7", "_score": 1.0, "_source": {"title": "a"}})
    >>> [row.cells for row in rows_of_object(hit)]
    [{'_id': '7', 'title': 'a'}]
    >>> group = {"queries": [{"placeholders": {"$query": "a"}}]}
    >>> rated = Row(location, {**group, "relevant_documents": {"7": {"gain": 3}}})
    >>> [row.cells for row in rows_of_object(rated)]
    [{'query': 'a', 'relevant_documents': {'7': 3}}]
    >>> texts = Row(location, {"queries": ["a"], "relevant_documents": {"7": 1}})
    >>> list(rows_of_object(texts)) == [texts]
    True
    """
    cells = row.cells
    if cells.keys().isdisjoint(SHAPED_KEYS):
        yield row
        return
    rated_query = _rated_query(row)
    if rated_query is not None:
        yield rated_query.as_row(row.location)
        return
    conversation = _conversation_row(row)
    if conversation is not None:
        yield conversation
        return
    source = cells.get("_source")
    if isinstance(source, dict):
        yield Row(row.location, {"_id": cells.get("_id"), **source})
        return
    groups = cells.get("queries") if "relevant_documents" in cells else None
    groups = cells.get("query_groups", groups)
    if isinstance(groups, list) and (not groups or _has_objects(groups)):
        yield from _group_rows(row, groups)
        return
    if isinstance(cells.get("placeholders"), dict):
        grades = _grades_by_document(cells.get("relevant_documents"))
        query = _placeholder_query(row)
        yield Row(row.location, {"query": query, "relevant_documents": grades})
        return
    yield row


def _rated_query(row: Row) -> RatedQuery | None:
    """Return the query with ratings in a row; None if the row has another shape."""
    request = row.cells.get("request", row.cells.get("params"))
    ratings = row.cells.get("ratings")
    if not isinstance(ratings, list) or not isinstance(request, dict):
        return None
    query = _searched_text(request.get("query", request))
    return RatedQuery(row.cells.get("id"), query, ratings)


def _searched_text(query: Any) -> str | None:
    """Return the text for which a request of Elasticsearch searches.

    That is the first text under `query`, else the first of all.
    """
    if isinstance(query, str):
        return query
    parts: list[Any] = []
    if isinstance(query, list):
        parts = query
    elif isinstance(query, dict):
        keys = sorted(query, key=lambda key: key != "query")
        parts = [query[key] for key in keys if key not in KEYS_WITHOUT_TEXT]
    return next(filter(None, map(_searched_text, parts)), None)


def _conversation_row(row: Row) -> Row | None:
    """Return a conversation as a query with its history; None if the row has none."""
    for message_key in MESSAGE_KEYS:
        messages: Any = row.cells.get(message_key)
        if not _is_conversation(messages):
            continue
        last = len(messages) - 1
        while message_role(messages[last]) not in ASKING_ROLES:
            last -= 1
        # The same messages may be under two keys, as one object.
        cells = {key: cell for key, cell in row.cells.items() if cell is not messages}
        cells["query"] = messages[last]["content"]
        cells["history"] = messages[:last]
        return Row(row.location, cells)
    return None


def _is_conversation(messages: Any) -> bool:
    """Whether a value is a conversation with a person, as in DeepEval and Ragas."""
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        return False
    return any(message_role(message) in ASKING_ROLES for message in messages)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("content"), str)


def _group_rows(row: Row, groups: list[Any]) -> Iterator[Row]:
    """Yield the queries of groups; a query by several templates is one query.

    A group that is no object is left out.
    """
    shared: dict[str, Any] = {}
    if "relevant_documents" in row.cells:
        shared["relevant_documents"] = row.cells["relevant_documents"]
    queries: list[Row] = []
    for group in groups:
        if not isinstance(group, dict):
            continue
        for query in rows_of_object(Row(row.location, {**shared, **group})):
            if query not in queries:
                queries.append(query)
                yield query


def _placeholder_query(row: Row) -> Any:
    """Return the value of the placeholder for the query, else the first value."""
    placeholders = row.cells["placeholders"]
    for placeholder in QUERY_PLACEHOLDERS:
        if placeholder in placeholders:
            return placeholders[placeholder]
    return next(iter(placeholders.values()), None)


def _grades_by_document(ratings: Any) -> Any:
    """Return grades by document, of `{"d1": {"gain": 3}}` or of `{"3": ["d1"]}`.

    Ratings of another form are returned unchanged.
    """
    if not isinstance(ratings, dict):
        return ratings
    grades: dict[str, Any] = {}
    for key, rating in ratings.items():
        if isinstance(rating, list):
            grades |= dict.fromkeys(map(str, rating), key)
        else:
            grades[key] = rating
    for document, grade in grades.items():
        if isinstance(grade, dict):
            grades[document] = grade.get("gain", grade)
    return grades
