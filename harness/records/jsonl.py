"""Lines of JSON in text files."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast, get_type_hints

from pydantic import (
    GetCoreSchemaHandler,
    GetPydanticSchema,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from retrievers.files.text_files import explain_write_errors, open_text_file

JsonRow = TypeVar("JsonRow")
MAX_NAMED_FAULTS = 5
"""Problems of one record that one message names, at most."""


@contextmanager
def new_text_file(path: Path) -> Iterator[TextIO]:
    r"""Open a file for new text in UTF-8 with \n, and make its folder if needed.

    Raises:
        InputError: it cannot be written.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_text_file(path, "w") as file:
            yield file


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object on each line."""
    with new_text_file(path) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_json_lines(
    path: Path, parse: Callable[[bytes], JsonRow] = json.loads
) -> Iterator[JsonRow]:
    """Stream the rows of a file, without its blank lines.

    Args:
        path: the file.
        parse: reads one line; ValueError if it is no row.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a row.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = parse(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
            yield row


def parse_record(record: type[JsonRow], text: bytes | str) -> JsonRow:
    """Read JSON as a record with typed fields; other keys are ignored.

    Raises:
        ValueError: it is not JSON, or a key is missing or of another type.
    """
    adapter: TypeAdapter[JsonRow] = _record_adapter(cast(Hashable, record))
    try:
        # In strict mode, only JSON can have a list for a tuple.
        parsed: JsonRow = adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(describe_faults(error)) from None
    return parsed


def reads_by(parse: Callable[[Any], Any]) -> GetPydanticSchema:
    """Return the annotation of a field that is stored in another form.

    Args:
        parse: returns the field's value from its stored form; ValueError if that is
            wrong. pydantic first checks that the form has the type of this parameter.
    """

    def schema(_: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        stored_type, *_others = get_type_hints(parse).values()
        stored_schema = handler.generate_schema(stored_type)
        return core_schema.no_info_after_validator_function(parse, stored_schema)

    return GetPydanticSchema(schema)


def describe_faults(error: ValidationError) -> str:
    """Return the first faults of a record, each with its key.

    >>> try:
    ...     TypeAdapter(dict[str, int]).validate_json('{"depth": "x"}')
    ... except ValidationError as error:
    ...     print(describe_faults(error).partition(",")[0])
    depth: Input should be a valid integer
    """
    faults: list[str] = []
    for fault in error.errors()[:MAX_NAMED_FAULTS]:
        keys = ".".join(map(str, fault["loc"]))
        faults.append(f"{keys}: {fault['msg']}" if keys else fault["msg"])
    return "; ".join(faults)


@cache
def _record_adapter(record: Any) -> TypeAdapter[Any]:
    return TypeAdapter(record)
