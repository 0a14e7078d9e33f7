"""A folder of documents and labels becomes an experiment that runs; what is missing is told with what it looks like."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from harness.dataset import DatasetReference
from harness.dataset import load as load_data
from harness.experiment import init, load
from harness.experiment.init import write_experiment
from harness.pipeline import run
from harness.running.options import Options
from retrievers.errors import InputError
from tests.harness.experiment.test_experiment import validator
from tests.support import layouts, small
from tests.support.small import Call, refusal


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without the local model, in an empty working directory."""
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small.dataset(tmp_path / "d")


def written(place: object, **options: object) -> str:
    """The text of the experiment file."""
    return write_experiment(place, **options).path.read_text(encoding="utf-8")


def beir(folder: Path, *splits: str) -> Path:
    grades = {id_: dict.fromkeys(docs, 1) for id_, _, docs in small.QUERIES}
    layouts.beir(folder, layouts.Collection(small.TEXTS, {id_: text for id_, text, _ in small.QUERIES}, grades))
    made = (folder / "qrels" / "test.tsv").rename(folder / "made").read_bytes()
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_bytes(made)
    (folder / "made").unlink()
    return folder


@pytest.mark.parametrize("write", [small.dataset, lambda folder: beir(folder, "test")])
def test_what_is_written_runs(tmp_path: Path, write) -> None:
    made = write_experiment(write(tmp_path / "my docs"))
    assert made.path == Path("my-docs.toml")
    lines = list(made.lines())
    assert "6 documents, 6 labelled queries" in lines[0] and "  harness run my-docs.toml" in lines
    text = made.path.read_text(encoding="utf-8")
    made.path.write_text(text.replace("\ndepth = ", "\nreport = false\ndepth = "), encoding="utf-8")
    results = run(made.path, Options(tmp_path / "out"))
    assert results.retrievers == ("bm25", "hashing", "hybrid")
    assert results.manifest.dataset.queries == 6


def test_what_is_written_is_what_the_editor_expects(folder: Path) -> None:
    text = written(folder)
    validator().validate(tomllib.loads(text))
    # Everything that stands there to be uncommented is right as well.
    uncommented = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and ("=" in line or "[[" in line) else line
        for line in text.split("\n")
    )
    Path("all.toml").write_text(uncommented, encoding="utf-8")
    validator().validate(tomllib.loads(uncommented))
    assert len(load("all.toml").experiment.retrievers) == 6


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("The lease is not valid, and the notice of a month is over. Ask for a copy.", True),
        ("Der Vertrag ist nicht gültig, und die Frist von einem Monat ist vorbei.", False),
        ("Договор истёк, и срок вышел. Что это для нас и как от него уйти?", False),
        ("यह अनुबंध मान्य नहीं है और एक महीने की अवधि समाप्त हो गई है।", False),
        ("一年に二十五日の有給休暇があります。", False),
    ],
)
def test_models_that_know_the_language_are_taken_and_proposed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, english: bool
) -> None:
    for file in folder.glob("*.md"):
        file.write_text(text, encoding="utf-8")
    (folder / "queries.json").write_text(json.dumps([{"query": text, "relevant_documents": ["apple"]}]))
    bare = written(folder)
    assert ("ms-marco-MiniLM" in bare) == english == ("bge-reranker-v2-m3" not in bare)
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: object())
    text = written(folder, output=Path("local.toml"))
    assert ("all-MiniLM-L6-v2" in text) == english == ('name = "hashing"' not in text)
    assert ("multilingual-e5-base" in text) != english


def test_labels_that_are_missing_are_shown(folder: Path) -> None:
    (folder / "queries.json").unlink()
    said = str(refusal(write_experiment, folder)).split("\n")
    assert said[0].endswith(": 6 documents, but no question")
    assert json.loads(said[2])[0]["relevant_documents"] == ["apple", "boat"]
    assert "queries.txt" in said[3]
    assert said[5].endswith(f"harness init {folder}")


def test_a_folder_in_another_layout_is_told(tmp_path: Path) -> None:
    """README.md says what the folder holds; it is not a document, and the example of a label must not name it."""
    (tmp_path / "README.md").write_text("# Our help pages", encoding="utf-8")
    (tmp_path / "pages.xml").write_text("<pages/>", encoding="utf-8")
    told = str(refusal(write_experiment, tmp_path))
    assert "holds no documents: only .md, .xml" in told and "README" not in told
    (tmp_path / "a.pdf").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no documents .*2 are not \(.pdf 1, .xml 1\)"):
        write_experiment(tmp_path)
    folder = beir(tmp_path / "b", "test")
    (folder / "queries.jsonl").rename(folder / "golden.jsonl")
    with pytest.raises(InputError, match=r"holds no queries of this format .*--queries golden.jsonl"):
        write_experiment(folder)


def test_a_split_is_named_where_it_must_be(tmp_path: Path) -> None:
    assert load(write_experiment(beir(tmp_path / "a", "dev", "test")).path).dataset.split is None
    with pytest.raises(InputError, match=r"has the splits dev, train \(name one"):
        write_experiment(beir(tmp_path / "b", "dev", "train"))
    reference = DatasetReference(tmp_path / "b", split="dev")
    assert load(write_experiment(reference).path).dataset.split == "dev"


def test_several_files_of_labels(folder: Path) -> None:
    with pytest.raises(InputError, match="there is no column 'rating', as at 5 more places"):
        write_experiment(DatasetReference(folder, columns={"grade": "rating"}))
    rows = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    more = [{"id": "q-more", "query": "green", "relevant_documents": {"pear": 2, "car": 0}}]
    for name, held in (("again", rows[:2]), ("more", more), ("settings", {"theme": "dark"})):
        (folder / f"{name}.json").write_text(json.dumps(held), encoding="utf-8")
    made = write_experiment(folder)
    assert load(made.path).dataset.queries == ("queries.json", "more.json")
    assert "ignored, the same queries again: again.json" in list(made.lines())
    assert "explicit" in made.path.read_text(encoding="utf-8")


def test_a_file_or_a_link_that_is_there_stays(folder: Path) -> None:
    write_experiment(folder)
    with pytest.raises(InputError, match="is there already"):
        write_experiment(folder)
    assert load(write_experiment(folder, Path("sub/other.toml")).path).experiment.name == "other"
    Path("link.toml").symlink_to("elsewhere.toml")
    with pytest.raises(InputError, match="is there already"):
        write_experiment(folder, Path("link.toml"))
    assert not Path("elsewhere.toml").exists()


@pytest.mark.parametrize("name", ["my exp.toml", "-x.toml", "é.toml", "_.toml", "con.toml", "a" * 80 + ".toml"])
def test_what_init_writes_is_read_by_the_command_that_it_prints(folder: Path, call: Call, name: str) -> None:
    said = call("init", "d", "--output", name, code=0).out
    command = next(line for line in said.splitlines() if "harness check" in line)
    call(*shlex.split(command)[1:], code=0)


@pytest.mark.parametrize("name", ["exp.txt", ".toml", "exp"])
def test_a_name_that_no_command_would_take_for_an_experiment_is_refused(folder: Path, call: Call, name: str) -> None:
    assert "does not end in .toml" in call("init", "d", "--output", name, code=2).err
    assert not Path(name).exists()


def test_labels_that_name_documents_by_fields_are_declared_by_options(tmp_path: Path, call: Call) -> None:
    pages = [{"id": f"n{page}", "text": f"page {page}", "file": "m.pdf", "page": str(page)} for page in (1, 2)]
    layouts.jsonl(tmp_path / "d" / "documents.jsonl", pages)
    asked = {"id": "q", "query": "two", "gold": [{"file": "m.pdf", "page": "2"}]}
    layouts.jsonl(tmp_path / "d" / "queries.jsonl", [asked])
    options = ("--columns", "label_document=gold.file,gold.page", "--match", "file,page")
    assert " ".join(options) in call("init", "d", code=2).err
    call("init", "d", *options, code=0)
    assert 'match = ["file", "page"]' in Path("d.toml").read_text(encoding="utf-8")
    assert load_data(load("d.toml").dataset).labels["q"].relevant == ("n2",)
