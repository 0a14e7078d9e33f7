"""The schema beside a new experiment file."""

import json
import tomllib
from pathlib import Path

import jsonschema

from harness.init.schema_file import write_schema
from harness.init.write_experiment import write_experiment


def small_folder(folder: Path) -> Path:
    documents = folder / "pages"
    documents.mkdir()
    (documents / "leave.md").write_text("20 days", encoding="utf-8")
    rows = "query,relevant\nhow many days,leave\n"
    (documents / "queries.csv").write_text(rows, encoding="utf-8")
    return documents


def test_the_first_line_names_the_schema_beside_the_file(tmp_path: Path) -> None:
    output = tmp_path / "new" / "pages.toml"
    write_experiment(small_folder(tmp_path), output)
    text = output.read_text(encoding="utf-8")
    reference = text.partition("\n")[0].removeprefix("#:schema ")
    schema = json.loads((output.parent / reference).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert list(validator.iter_errors(tomllib.loads(text))) == []
    assert not validator.is_valid(tomllib.loads(f"depht = 5\n{text}"))


def test_a_schema_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "experiment.schema.json"
    path.write_text("{}", encoding="utf-8")
    write_schema(tmp_path)
    assert path.read_text(encoding="utf-8") == "{}"


def test_the_catalogue_names_a_schema_that_is_there(project: Path) -> None:
    path = project / "experiments" / "catalog.json"
    [entry] = json.loads(path.read_text(encoding="utf-8"))["schemas"]
    assert (path.parent / entry["url"]).is_file()
