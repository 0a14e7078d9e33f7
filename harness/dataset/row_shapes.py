"""Objects that stand for several rows."""

from collections.abc import Iterator
from typing import Any

from harness.dataset.source import TableRow

BULK_ACTIONS = ("index", "create")
"""What a bulk request does with the document on the next line."""
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
"""Of a request, what is not searched for."""
MESSAGE_KEYS, ASKING_ROLES = ("turns", "messages", "user_input"), ("user", "human")
"""Where a conversation is, and who asks in it: its last question is the query."""
QUERY_PLACEHOLDERS = ("$query", "query", "$q", "q")


def rows_in_json(whole: Any) -> tuple[str, list[Any]] | None:
    """Find the rows of a JSON file, and the key of their list, "" for a list; None where neither is clear.

    >>> rows_in_json({"version": 1, "examples": [{"input": "a"}]})
    ('examples', [{'input': 'a'}])
    >>> rows_in_json({"hits": {"total": 1, "hits": [{"_id": "a"}]}}), rows_in_json({"a": [{}], "b": [{}]})
    (('hits.hits', [{'_id': 'a'}]), None)
    """
    if isinstance(whole, list):
        return "", whole
    if not isinstance(whole, dict):
        return None
    held = whole["hits"] if isinstance(whole.get("hits"), dict) else whole
    keys = [
        key
        for key, rows in held.items()
        if isinstance(rows, list) and any(isinstance(one, dict) for one in rows)
    ]
    if len(keys) != 1:
        return None
    return (keys[0] if held is whole else f"hits.{keys[0]}"), held[keys[0]]


def bulk_action(row: TableRow) -> TableRow | None:
    """What a bulk request says of the document on the next line; None for a row that says nothing of the kind.

    >>> bulk_action({"index": {"_index": "help", "_id": "7"}}), bulk_action({"index": 3, "text": "a"})
    ({'_index': 'help', '_id': '7'}, None)
    """
    name, said = next(iter(row.items()), ("", None))
    is_action = (
        len(row) == 1
        and name in BULK_ACTIONS
        and isinstance(said, dict)
        and all(key[0] == "_" for key in said)
    )
    return said if is_action else None


def rows_of_object(row: TableRow) -> Iterator[TableRow]:
    """Yield the rows that an object of JSON stands for: itself, a hit's document, or the queries of a group of ratings.

    >>> list(rows_of_object({"_id": "7", "_score": 1.0, "_source": {"title": "a"}}))
    [{'_id': '7', 'title': 'a'}]
    >>> list(rows_of_object({"queries": [{"placeholders": {"$query": "a"}}], "relevant_documents": {"7": {"gain": 3}}}))
    [{'query': 'a', 'relevant_documents': {'7': 3}}]
    """
    groups = row.get(
        "query_groups", row.get("queries") if "relevant_documents" in row else None
    )
    if (rated := _rank_eval(row)) is not None:
        yield rated
    elif (
        turns := next(
            (row[key] for key in MESSAGE_KEYS if _are_messages(row.get(key))), None
        )
    ) is not None:
        last = max(
            place for place, one in enumerate(turns) if _speaker(one) in ASKING_ROLES
        )
        rest = {key: value for key, value in row.items() if value is not turns}
        yield {**rest, "query": turns[last]["content"], "history": turns[:last]}
    elif isinstance(source := row.get("_source"), dict):
        yield {"_id": row.get("_id"), **source}
    elif isinstance(groups, list):
        shared = {key: row[key] for key in ("relevant_documents",) if key in row}
        seen: list[TableRow] = []  # one query by several templates is one query
        for rated in (
            one
            for group in groups
            if isinstance(group, dict)
            for one in rows_of_object({**shared, **group})
        ):
            if rated not in seen:
                seen.append(rated)
                yield rated
    elif isinstance(placeholders := row.get("placeholders"), dict):
        named = [
            placeholders[name] for name in QUERY_PLACEHOLDERS if name in placeholders
        ] or list(placeholders.values())
        yield {
            "query": next(iter(named), None),
            "relevant_documents": _grades(row.get("relevant_documents")),
        }
    else:
        yield row


def _are_messages(held: Any) -> bool:
    """Whether a value is a conversation with a person in it, as DeepEval and Ragas have it."""
    messages = isinstance(held, list) and all(
        isinstance(one, dict) and isinstance(one.get("content"), str) for one in held
    )
    return messages and any(_speaker(one) in ASKING_ROLES for one in held)


def _speaker(message: TableRow) -> Any:
    return message.get("role", message.get("type"))


def _rank_eval(row: TableRow) -> TableRow | None:
    """A query with its ratings as Elasticsearch's `_rank_eval` takes it; None for any other row."""
    asked = row.get("request", row.get("params"))
    if not isinstance(row.get("ratings"), list) or not isinstance(asked, dict):
        return None
    named = {"query_id": row["id"]} if "id" in row else {}
    return {
        **named,
        "query": _asked_text(asked.get("query", asked)),
        "relevant": row["ratings"],
    }


def _asked_text(query: Any) -> str | None:
    """What a request of Elasticsearch searches for: the first text under `query`, else the first of all."""
    if isinstance(query, str):
        return query
    inner: list[Any] = []
    if isinstance(query, list):
        inner = query
    elif isinstance(query, dict):
        inner = [
            query[key]
            for key in sorted(query, key=lambda key: key != "query")
            if key not in KEYS_WITHOUT_TEXT
        ]
    return next(filter(None, map(_asked_text, inner)), None)


def _grades(rated: Any) -> Any:
    """Grades by document, of `{"d1": {"gain": 3}}` or of `{"3": ["d1"]}`; what is neither is left as it is."""
    if not isinstance(rated, dict):
        return rated
    grades: dict[str, Any] = {}
    for key, said in rated.items():
        grades |= (
            dict.fromkeys(map(str, said), key)
            if isinstance(said, list)
            else {key: said}
        )
    return {
        doc: said.get("gain", said) if isinstance(said, dict) else said
        for doc, said in grades.items()
    }
