"""What pages export, written without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE_DATA = re.compile(
    r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL
)


def page_data(page: Path) -> Any:
    """The data of a page's script."""
    found = PAGE_DATA.search(page.read_text(encoding="utf-8"))
    assert found is not None, page
    return json.loads(found[1])


def judgments(
    page: Path,
    path: Path,
    grade: Callable[[str, str], int],
    *,
    first: int | None = None,
    judge: str = "ann",
) -> Path:
    """Write the file that a judging page exports.

    Args:
        page: the page.
        path: the file.
        grade: of a question and a document's text.
        first: how many labels were given; by default all.
        judge: the person.
    """
    data = page_data(page)
    lines = []
    for item in data["items"][:first]:
        query = data["queries"][item["query"]]
        document = data["documents"][item["text"]]
        row = {
            "query_id": query["id"],
            "document_id": document["id"],
            "grade": grade(query["text"], document["text"]),
            "judge": judge,
            "kind": "human",
            "pool": data["pool"],
            "text": document["digest"],
            "prompt": data["prompt"],
            "design": data["design"],
            "inclusion": query["inclusion"],
            "population": data["population"],
            "asked": query["asked"],
            "round": item["round"],
            "seconds": 1.5,
            "note": "",
            "at": "2026-11-28T12:00:00.000Z",
        }
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def preferences(
    page: Path,
    path: Path,
    choose: Callable[[Any, int], str],
    *,
    judge: str = "ann",
) -> Path:
    """Write the file that a page of preferences exports.

    Args:
        page: the page.
        path: the file.
        choose: the side, of a query's data and the round.
        judge: the person.
    """
    data = page_data(page)
    lines = []
    for step in data["steps"]:
        query = data["queries"][step["query"]]
        row = {
            "query_id": query["id"],
            "choice": choose(query, step["round"]),
            "round": step["round"],
            "judge": judge,
            "page": data["page"],
            "depth": data["depth"],
            "seed": data["seed"],
            "seconds": 2.0,
            "at": "2026-11-28T12:00:00.000Z",
        }
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path
