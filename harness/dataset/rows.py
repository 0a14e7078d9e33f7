"""Rows of a table in any file: JSON Lines, JSON, CSV, TSV, Parquet, Arrow, a sheet of a workbook.

In JSON they are in a list, under one key of an object, or in what searches say: Elasticsearch and OpenSearch keep a
document under `_source`, and in a bulk request on the line after its id; RRE (and Quepid, which exports in its form)
keeps queries in groups that share their ratings.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from harness.dataset import files
from harness.dataset.files import COMPRESSED
from harness.dataset.files import File as File  # what other rooms give these readers
from harness.dataset.source import (
    Findings,
    SourceLocation,
    decode,
    named_twice,
    parse_json,
)
from harness.english import counted
from retrievers.errors import InputError, Problem, collecting
from retrievers.opening import DELIMITERS, kind_of

SUFFIXES = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".yaml",
    ".yml",
    ".csv",
    ".tsv",
    *files.COLUMNAR,
    *files.SUFFIXES,
)
"""What tables are read from."""
PLAIN = (".txt",)
"""Text with one question a line: of queries alone."""
SAYS_DELIMITER = re.compile(r'"?sep=(.)"?')
"""Excel's line above a table."""
VALID = "write it with a JSON library, and see that it is whole"
QUEPID = ["query", "docid", "rating"]
"""The header of Quepid's export of ratings."""
Row = Mapping[str, Any]
ACTIONS = ("index", "create")
"""What a bulk request does with the document on the next line."""
NO_TEXT = (
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
MESSAGES, ASKS = ("turns", "messages", "user_input"), ("user", "human")
"""Where a conversation is, and who asks in it: its last question is the query."""
PLACEHOLDERS = ("$query", "query", "$q", "q")


def read_rows(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    """Stream the rows of one file, each with its line (of Parquet and Arrow, its number from 1).

    Cells of CSV, TSV and sheets are text, empty ones too. What cannot be read is added to `problems` and skipped.

    Args:
        file: one with a suffix of `SUFFIXES` or of `PLAIN`; any other is read as JSON Lines.
        problems: where complaints go.
    """
    readers = {
        ".csv": _csv,
        ".tsv": _csv,
        ".json": _json,
        ".txt": _txt,
        ".yaml": _yaml,
        ".yml": _yaml,
    }
    readers |= dict.fromkeys(files.COLUMNAR, _columnar) | dict.fromkeys(
        files.SUFFIXES, _sheet
    )
    with collecting(problems):
        yield from readers.get(file.suffix, _jsonl)(file, problems)


def read_lines(file: File, problems: Findings) -> Iterator[tuple[int, str]]:
    """Stream the non-blank lines of a UTF-8 file with their numbers, cut at line feeds alone."""
    with (
        collecting(problems),
        file.open() as handle,
    ):  # one complaint: in another encoding every line is wrong
        for number, line in enumerate(_decoded(handle, file.path), 1):
            if line and not line.isspace():
                yield number, line


def _text(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = decode(raw, SourceLocation(path, number))
    return text.removeprefix("\ufeff").rstrip("\r\n")


def _jsonl(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    begun = False
    action: Row = {}
    for number, line in read_lines(file, problems):
        place = SourceLocation(file.path, number)
        first, begun = not begun, True
        try:
            row = parse_json(line)
        except ValueError as error:
            if first and (kind := kind_of(line)) not in ("", "JSON"):
                what = f"is not JSON Lines: it looks like {kind}"
                problems.append(
                    Problem(str(place), what, "expected one JSON object a line: {…}")
                )
                return
            problems.append(Problem(str(place), f"is not JSON: {error}", VALID))
            continue
        if not isinstance(row, dict):
            problems.append(
                Problem(
                    str(place), "is not a JSON object", 'expected {"_id": …, "text": …}'
                )
            )
        elif (said := bulk_action(row)) is not None:
            action = {"_id": said["_id"]} if "_id" in said else {}
        else:
            yield from ((place, {**action, **plain}) for plain in plain_rows(row))
            action = {}


def read_jsonl(path: Path, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    """Stream the objects of a JSON Lines file; a line that is none becomes a problem."""
    return _jsonl(File(path), problems)


def read_text(path: Path) -> str:
    """Read a UTF-8 file whole, a byte order mark left out.

    Raises:
        InputError: it cannot be read, or has another encoding.
    """
    return decode(File(path).read(), SourceLocation(path))


def read_json(file: File) -> Any:
    """Parse a JSON file whole; InputError with its line where it is none."""
    text = decode(file.read(), SourceLocation(file.path))
    try:
        return parse_json(text)
    except ValueError as error:
        place = SourceLocation(file.path, getattr(error, "lineno", None))
        raise InputError(
            Problem(str(place), f"is not JSON: {getattr(error, 'msg', error)}", VALID)
        ) from None


def _json(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    try:
        found = listed(read_json(file))
    except InputError as error:
        if "Extra data" not in str(error):
            raise
        yield from _jsonl(
            file, problems
        )  # one object a line, whatever the file is called
        return
    yield from _listed(file, found, problems)


def _yaml(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    """The rows of YAML; every value is text, so that the id 007 stays what it is."""
    import yaml

    try:
        whole = yaml.load(
            decode(file.read(), SourceLocation(file.path)),
            yaml.BaseLoader,  # noqa: S506
        )
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = SourceLocation(file.path, mark.line + 1 if mark else None)
        raise InputError(
            Problem(
                str(place), f"is not YAML: {getattr(error, 'problem', error)}", VALID
            )
        ) from None
    yield from _listed(file, listed(whole), problems)


def _listed(
    file: File, found: tuple[str, list[Any]] | None, problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """Rows that are listed in one file, each with its number."""
    if found is None:
        what = "is not a list of objects, nor an object with one such list"
        problems.append(
            Problem(str(file.path), what, "or name it .jsonl: one object a line")
        )
        return
    key, rows = found
    for number, row in enumerate(rows):
        place = SourceLocation(Path(f"{file.path}{key and f': {key}'}[{number}]"))
        if isinstance(row, dict):
            yield from ((place, plain) for plain in plain_rows(row))
        else:
            problems.append(
                Problem(str(place), "is not an object", "every entry is one: {…}")
            )


def _txt(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    for number, line in read_lines(file, problems):
        yield SourceLocation(file.path, number), {"query": line.strip()}


def _csv(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    if file.suffix != ".tsv" or file.header is None:
        rows: Iterable[tuple[int, list[str]]] = _separated(
            file, "\t" if file.suffix == ".tsv" else _delimiter_of(file)
        )
    else:  # as MS MARCO's: a quote is a character like any other
        rows = (
            (number, line.split("\t") if "\t" in line else line.split())
            for number, line in read_lines(file, problems)
        )
    yield from _table(file, rows, problems)


def _delimiter_of(file: File) -> str:
    """What the header of a table has most often between its cells: Excel writes semicolons where a comma is decimal."""
    with file.open() as handle:
        header = next(
            (line for line in _decoded(handle, file.path) if line.strip()), ""
        )
    if said := SAYS_DELIMITER.fullmatch(header.strip(" ")):
        return said[1]
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", header).count)


def _separated(file: File, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, quoted as RFC 4180 has it, a quoted cell over several lines too, each with its first line.

    Raises:
        InputError: from some line on it is not a table.
    """
    csv.field_size_limit(2**31 - 1)
    with file.open() as handle:
        reader = csv.reader(_cells(handle, file.path), delimiter=delimiter, strict=True)
        begins = 1
        try:
            for cells in reader:
                yield begins, cells
                begins = reader.line_num + 1
        except csv.Error as error:
            remedy = "put every cell with a quote in quotes, and double the quote"
            if "new-line character" in str(error):
                error, remedy = (
                    csv.Error("its lines end in carriage returns alone"),
                    "save it as CSV UTF-8",
                )
            what = f"cannot be read as a table: {error}"
            raise InputError(
                Problem(str(SourceLocation(file.path, begins)), what, remedy)
            ) from None


def _columnar(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    packed = (
        file.archive is not None or file.twin or file.path.suffix.lower() in COMPRESSED
    )
    kind = "Parquet" if file.suffix == ".parquet" else "Arrow"
    return files.columnar_rows(
        file.path, kind, file.read() if packed else None, problems
    )


def _sheet(file: File, problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
    """The rows of a sheet: of the one that is named, else of the only one that holds anything."""
    sheets = files.sheets(file.read(), file.path)
    name = _sheet_of(file, tuple(sheets))
    yield from _table(file, enumerate(sheets[name], 1), problems)


def _sheet_of(file: File, names: Sequence[str]) -> str:
    """The sheet that is meant: the named one, else the only one; InputError where there is none such."""
    if file.table in names or (not file.table and len(names) == 1):
        return file.table or names[0]
    there = (
        f"has the sheets {', '.join(map(repr, names))}"
        if names
        else "holds no sheet with a value"
    )
    what = (
        f"has no sheet {file.table!r}, but {there.removeprefix('has ')}"
        if file.table
        else there
    )
    raise InputError(
        Problem(
            str(file.path),
            what,
            f"name one: {file.path.name}#SHEET" if names else "fill one in",
        )
    )


def _table(
    file: File, rows: Iterable[tuple[int, list[str]]], problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """Rows of cells under the names of their columns: those of the first row, unless the file is said to have none."""
    header: list[str] = []
    none = True
    path = Path(f"{file.path}#{file.table}") if file.table else file.path
    for line, cells in (
        (line, cells) for line, cells in rows if any(cell.strip() for cell in cells)
    ):
        place = SourceLocation(path, line)
        if not header and file.header is None:
            header = [cell.strip() for cell in cells]
            if named_twice(header, str(place), problems):
                return
            continue
        if (
            not header and cells[:2] == list(file.header or ())[:2]
        ):  # there is a header after all
            continue
        header = header or _names(file.header or (), len(cells))
        none = False
        if header == QUEPID and len(cells) == 1:  # a query without ratings
            cells = [*cells, "", ""]
        if len(cells) != len(header):
            remedy = f"{'the header has' if file.header is None else 'expected'} {len(header)}: {', '.join(header[:8])}"
            remedy += (
                "; this is TREC's form"
                if (len(cells), len(header)) == (4, 3) and file.header
                else ""
            )
            problems.append(Problem(str(place), counted(len(cells), "column"), remedy))
        else:
            yield place, dict(zip(header, cells, strict=True))
    if not header:
        problems.append(
            Problem(str(file.path), "is empty", "a header, then one row a line")
        )
    elif none:
        remedy = "write rows below it; or say header = false (--no-header) if it is one"
        problems.append(
            Problem(
                str(file.path),
                f"has no row below its first one, {', '.join(header)[:60]}",
                remedy,
            )
        )


def _names(header: Sequence[str], columns: int) -> list[str]:
    """The names of so many columns of a table without a header; "" at the end stands for any more."""
    if header[-1]:
        return list(header)
    return [*header[:-1][:columns], *map(str, range(len(header), columns + 1))]


def _decoded(handle: IO[bytes], path: Path) -> Iterator[str]:
    """The lines of a file as text, without their ends."""
    yield from (_text(raw, path, number) for number, raw in enumerate(handle, 1))


def _cells(handle: IO[bytes], path: Path) -> Iterator[str]:
    """The lines of a table, with an end each."""
    for number, line in enumerate(_decoded(handle, path), 1):
        yield (
            "\n"
            if number == 1 and SAYS_DELIMITER.fullmatch(line.strip(" "))
            else f"{line}\n"
        )


def listed(whole: Any) -> tuple[str, list[Any]] | None:
    """Find the rows of a JSON file, and the key of their list, "" for a list; None where neither is clear.

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
    keys = [
        key
        for key, rows in held.items()
        if isinstance(rows, list) and any(isinstance(one, dict) for one in rows)
    ]
    if len(keys) != 1:
        return None
    return (keys[0] if held is whole else f"hits.{keys[0]}"), held[keys[0]]


def bulk_action(row: Row) -> Row | None:
    """What a bulk request says of the document on the next line; None for a row that says nothing of the kind.

    >>> bulk_action({"index": {"_index": "help", "_id": "7"}}), bulk_action({"index": 3, "text": "a"})
    ({'_index': 'help', '_id': '7'}, None)
    """
    name, said = next(iter(row.items()), ("", None))
    is_action = (
        len(row) == 1
        and name in ACTIONS
        and isinstance(said, dict)
        and all(key[0] == "_" for key in said)
    )
    return said if is_action else None


def plain_rows(row: Row) -> Iterator[Row]:
    """Yield the rows that an object of JSON stands for: itself, a hit's document, or the queries of a group of ratings.

    >>> list(plain_rows({"_id": "7", "_score": 1.0, "_source": {"title": "a"}}))
    [{'_id': '7', 'title': 'a'}]
    >>> list(plain_rows({"queries": [{"placeholders": {"$query": "a"}}], "relevant_documents": {"7": {"gain": 3}}}))
    [{'query': 'a', 'relevant_documents': {'7': 3}}]
    """
    groups = row.get(
        "query_groups", row.get("queries") if "relevant_documents" in row else None
    )
    if (rated := _rank_eval(row)) is not None:
        yield rated
    elif (
        turns := next(
            (row[key] for key in MESSAGES if _are_messages(row.get(key))), None
        )
    ) is not None:
        last = max(place for place, one in enumerate(turns) if _speaker(one) in ASKS)
        rest = {key: value for key, value in row.items() if value is not turns}
        yield {**rest, "query": turns[last]["content"], "history": turns[:last]}
    elif isinstance(source := row.get("_source"), dict):
        yield {"_id": row.get("_id"), **source}
    elif isinstance(groups, list):
        shared = {key: row[key] for key in ("relevant_documents",) if key in row}
        seen: list[Row] = []  # one query by several templates is one query
        for rated in (
            one
            for group in groups
            if isinstance(group, dict)
            for one in plain_rows({**shared, **group})
        ):
            if rated not in seen:
                seen.append(rated)
                yield rated
    elif isinstance(placeholders := row.get("placeholders"), dict):
        named = [
            placeholders[name] for name in PLACEHOLDERS if name in placeholders
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
    return messages and any(_speaker(one) in ASKS for one in held)


def _speaker(message: Row) -> Any:
    return message.get("role", message.get("type"))


def _rank_eval(row: Row) -> Row | None:
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
            if key not in NO_TEXT
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
