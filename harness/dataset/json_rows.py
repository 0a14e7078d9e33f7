"""Where the rows stand in JSON: in a list, under one key of an object, in hits, bulk requests or ratings of a search.

Elasticsearch and OpenSearch keep a document under `_source`, and in a bulk request on the line after its id; RRE (and
Quepid, which exports in its form) keeps queries in groups that share their ratings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]
ACTIONS = ("index", "create")
"""What a bulk request does with the document on the next line."""
PLACEHOLDERS = ("$query", "query", "$q", "q")


def listed(whole: Any) -> tuple[str, list[Any]] | None:
    """Find the rows of a JSON file, and the key under which they stand, "" for a list; None where neither is clear.

    >>> listed({"version": 1, "examples": [{"input": "a"}]})
    ('examples', [{'input': 'a'}])
    >>> listed({"hits": {"total": 1, "hits": [{"_id": "a"}]}}), listed({"a": [{}], "b": [{}]})
    (('hits.hits', [{'_id': 'a'}]), None)
    """
    if isinstance(whole, list):
        return "", whole
    if not isinstance(whole, dict):
        return None
    held = whole["hits"] if isinstance(whole.get("hits"), dict) else whole
    keys = [key for key, rows in held.items() if isinstance(rows, list) and any(isinstance(one, dict) for one in rows)]
    if len(keys) != 1:
        return None
    return (keys[0] if held is whole else f"hits.{keys[0]}"), held[keys[0]]


def bulk_action(row: Row) -> Row | None:
    """What a bulk request says of the document on the next line; None for a row that says nothing of the kind.

    >>> bulk_action({"index": {"_index": "help", "_id": "7"}}), bulk_action({"index": 3, "text": "a"})
    ({'_index': 'help', '_id': '7'}, None)
    """
    name, said = next(iter(row.items()), ("", None))
    is_action = len(row) == 1 and name in ACTIONS and isinstance(said, dict) and all(key[0] == "_" for key in said)
    return said if is_action else None


def plain_rows(row: Row) -> Iterator[Row]:
    """Yield the rows that an object of JSON stands for: itself, a hit's document, or the queries of a group of ratings.

    >>> list(plain_rows({"_id": "7", "_score": 1.0, "_source": {"title": "a"}}))
    [{'_id': '7', 'title': 'a'}]
    >>> list(plain_rows({"queries": [{"placeholders": {"$query": "a"}}], "relevant_documents": {"7": {"gain": 3}}}))
    [{'query': 'a', 'relevant_documents': {'7': 3}}]
    """
    groups = row.get("query_groups", row.get("queries") if "relevant_documents" in row else None)
    if isinstance(source := row.get("_source"), dict):
        yield {"_id": row.get("_id"), **source}
    elif isinstance(groups, list):
        shared = {key: row[key] for key in ("relevant_documents",) if key in row}
        seen: list[Row] = []  # one query by several templates is one query
        for rated in (one for group in groups if isinstance(group, dict) for one in plain_rows({**shared, **group})):
            if rated not in seen:
                seen.append(rated)
                yield rated
    elif isinstance(placeholders := row.get("placeholders"), dict):
        named = [placeholders[name] for name in PLACEHOLDERS if name in placeholders] or list(placeholders.values())
        yield {"query": next(iter(named), None), "relevant_documents": _grades(row.get("relevant_documents"))}
    else:
        yield row


def _grades(rated: Any) -> Any:
    """Grades by document, of `{"d1": {"gain": 3}}` or of `{"3": ["d1"]}`; what is neither is left as it is."""
    if not isinstance(rated, dict):
        return rated
    grades: dict[str, Any] = {}
    for key, said in rated.items():
        grades |= dict.fromkeys(map(str, said), key) if isinstance(said, list) else {key: said}
    return {doc: said.get("gain", said) if isinstance(said, dict) else said for doc, said in grades.items()}
