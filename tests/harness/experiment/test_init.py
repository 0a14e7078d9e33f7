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
from harness.running.forecast import Options
from retrievers.errors import InputError
from tests.harness.experiment.test_experiment import validator
from tests.support import layouts, small
from tests.support.small import Call, refusal


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without the local model, in an empty working directory."""
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("harness.report.index.write_index", lambda place: None)
    monkeypatch.chdir(tmp_path)


def beir(folder: Path, *splits: str) -> Path:
    grades = {id_: dict.fromkeys(docs, 1) for id_, _, docs in small.QUERIES}
    layouts.beir(folder, layouts.Collection(small.TEXTS, {id_: text for id_, text, _ in small.QUERIES}, grades))
    made = (folder / "qrels" / "test.tsv").rename(folder / "made").read_bytes()
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_bytes(made)
    (folder / "made").unlink()
    return folder


@pytest.mark.parametrize("form", ["markdown", "beir"])
def test_what_is_written_runs(tmp_path: Path, form: str) -> None:
    folder = beir(tmp_path / "my docs", "test") if form == "beir" else small.dataset(tmp_path / "my docs")
    written = write_experiment(folder)
    assert written.path == Path("my-docs.toml")
    assert "6 documents, 6 labelled queries" in next(written.lines())
    assert "  harness run my-docs.toml" in list(written.lines())
    text = written.path.read_text(encoding="utf-8")
    written.path.write_text(text.replace("\ndepth = ", "\nreport = false\ndepth = "), encoding="utf-8")
    results = run(written.path, Options(tmp_path / "out"))
    assert not results.manifest.resolved.report
    assert results.retrievers == ("bm25", "hashing", "hybrid")
    assert results.manifest.dataset.queries == 6


def test_what_is_written_is_what_the_editor_expects(tmp_path: Path) -> None:
    text = write_experiment(small.dataset(tmp_path / "d")).path.read_text(encoding="utf-8")
    validator().validate(tomllib.loads(text))
    # Everything that stands there to be uncommented is right as well.
    uncommented = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and ("=" in line or "[[" in line) else line
        for line in text.split("\n")
    )
    assert tomllib.loads(uncommented) != tomllib.loads(text)
    Path("all.toml").write_text(uncommented, encoding="utf-8")
    validator().validate(tomllib.loads(uncommented))
    assert len(load("all.toml").experiment.retrievers) == 6


def test_the_local_model_is_taken_where_it_can_read_the_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: object())
    english = small.dataset(tmp_path / "english")
    assert "all-MiniLM-L6-v2" in write_experiment(english).path.read_text(encoding="utf-8")
    for file in small.dataset(tmp_path / "japanese").glob("*.md"):
        file.write_text("# 休暇\n\n一年に二十五日の有給休暇があります。", encoding="utf-8")
    told = write_experiment(tmp_path / "japanese").path.read_text(encoding="utf-8")
    assert 'name = "hashing"' in told
    assert "multilingual-e5-base" in told


def test_labels_that_are_missing_are_shown(tmp_path: Path) -> None:
    folder = small.dataset(tmp_path / "d")
    (folder / "queries.json").unlink()
    said = str(refusal(write_experiment, folder)).split("\n")
    assert said[0].endswith(": 6 documents, but no query")
    assert json.loads(said[2])[0]["relevant_documents"] == ["apple", "boat"]
    assert "queries.txt" in said[3]
    assert said[5].endswith(f"harness init {folder}")


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("The lease is not valid, and the notice of a month is over. Ask for a copy.", True),
        ("Der Vertrag ist nicht gültig, und die Frist von einem Monat ist vorbei.", False),
        ("Het contract is niet geldig, en de termijn van een maand is voorbij.", False),
        ("Договор истёк, и срок вышел. Что это для нас и как от него уйти?", False),
        ("यह अनुबंध मान्य नहीं है और एक महीने की अवधि समाप्त हो गई है।", False),
        ("Договір не дійсний, і термін в один місяць вже минув. Що це для нас?", False),
        ("一年に二十五日の有給休暇があります。", False),
    ],
)
def test_a_reranker_that_knows_the_language_is_proposed(tmp_path: Path, text: str, english: bool) -> None:
    folder = small.dataset(tmp_path / "d")
    for file in folder.glob("*.md"):
        file.write_text(text, encoding="utf-8")
    rows = [{"query": text, "relevant_documents": ["apple"]}]
    (folder / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    written = write_experiment(folder).path.read_text(encoding="utf-8")
    assert ("ms-marco-MiniLM" in written) == english
    assert ("bge-reranker-v2-m3" in written) != english


def test_a_folder_in_another_layout_is_not_given_a_document_and_a_label(tmp_path: Path) -> None:
    """README.md says what the folder holds; it is not a document, and the example of a label must not name it."""
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "README.md").write_text("# Our help pages\n", encoding="utf-8")
    (folder / "pages.xml").write_text("<pages/>", encoding="utf-8")
    told = refusal(write_experiment, folder)
    assert "holds no documents: only .md, .xml" in str(told)
    assert "README" not in str(told)


def test_half_a_beir_folder_is_told(tmp_path: Path) -> None:
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


def test_several_files_of_labels(tmp_path: Path) -> None:
    folder = small.dataset(tmp_path / "d")
    with pytest.raises(InputError, match="there is no column 'rating', as at 5 more places"):
        write_experiment(DatasetReference(folder, columns={"grade": "rating"}))
    rows = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    (folder / "again.json").write_text(json.dumps(rows[:2]), encoding="utf-8")
    more = [{"id": "q-more", "query": "green", "relevant_documents": {"pear": 2, "car": 0}}]
    (folder / "more.json").write_text(json.dumps(more), encoding="utf-8")
    (folder / "settings.json").write_text('{"theme": "dark"}', encoding="utf-8")
    written = write_experiment(folder)
    assert load(written.path).dataset.queries == ("queries.json", "more.json")
    assert "ignored, the same queries again: again.json" in list(written.lines())
    assert "explicit" in written.path.read_text(encoding="utf-8")


def test_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no documents .*1 is not \(.pdf 1\)"):
        write_experiment(tmp_path)


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    folder = small.dataset(tmp_path / "d")
    write_experiment(folder)
    with pytest.raises(InputError, match="is there already"):
        write_experiment(folder)
    assert load(write_experiment(folder, Path("sub/other.toml")).path).experiment.name == "other"


@pytest.mark.parametrize("name", ["my exp.toml", "-x.toml", "é.toml", "_.toml", "con.toml", "a" * 80 + ".toml"])
def test_what_init_writes_is_read_by_the_command_that_it_prints(call: Call, name):
    small.dataset(Path("mine"))
    written = call("init", "mine", "--output", name, code=0)
    command = next(line for line in written.out.splitlines() if "harness check" in line)
    assert call(*shlex.split(command)[1:]).code == 0


@pytest.mark.parametrize("name", ["exp.txt", ".toml", "exp"])
def test_a_name_that_no_command_would_take_for_an_experiment_is_refused(tmp_path, call: Call, name):
    small.dataset(Path("mine"))
    answer = call("init", "mine", "--output", name)
    assert (answer.code, "does not end in .toml" in answer.err) == (2, True)
    assert not (tmp_path / name).exists()


def test_nothing_is_written_through_a_link(tmp_path, call: Call):
    (tmp_path / "mine.toml").symlink_to(tmp_path / "elsewhere.toml")
    small.dataset(Path("mine"))
    answer = call("init", "mine")
    assert (answer.code, "is there already" in answer.err) == (2, True)
    assert not (tmp_path / "elsewhere.toml").exists()


def test_labels_that_name_documents_by_fields_are_declared_by_options(tmp_path, call: Call) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    pages = [{"id": f"n{page}", "text": f"page {page}", "file": "m.pdf", "page": str(page)} for page in (1, 2)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(one) + "\n" for one in pages), encoding="utf-8")
    asked = {"id": "q", "query": "two", "gold": [{"file": "m.pdf", "page": "2"}]}
    (folder / "queries.jsonl").write_text(json.dumps(asked), encoding="utf-8")
    options = ("--columns", "label_document=gold.file,gold.page", "--match", "file,page")
    assert " ".join(options) in call("init", folder, code=2).err
    call("init", folder, *options, code=0)
    assert 'match = ["file", "page"]' in Path("d.toml").read_text(encoding="utf-8")
    assert relevant_in("d.toml") == {"q": ["n2"]}


def relevant_in(path: str) -> dict[str, list[str]]:
    """The relevant documents of an experiment's queries."""
    found = load_data(load(path).dataset)
    return {query: list(labels.relevant) for query, labels in found.labels.items()}
