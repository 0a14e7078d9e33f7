"""Each reader of files is fed with damaged ones: an InputError, or a result.

Each file of a layout is damaged in turn, at places that hypothesis draws, the same in
every run. Data of a hub or of ir_datasets are not here: their files are those of
another library.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from harness.answers.systems import read_systems
from harness.console.listed_lines import read_listed_lines
from harness.dataset import DatasetReference, load_dataset
from harness.dataset.choose_reader import READERS_BY_FORMAT
from harness.dataset.judgment import read_judgments
from harness.labels.keep_drafts import DraftQuery, select_kept_drafts, write_drafts
from harness.labels.pool import read_pool, write_pool
from harness.labels.preferences_file import read_preferences
from harness.records.judge_files import read_passages, read_readings
from harness.records.judge_readings import JudgeIdentity
from harness.scoring.foreign_csv import read_score_file
from harness.without_labels.questions import read_questions
from retrievers.errors import InputError
from tests.harness.dataset import test_shapes as shapes
from tests.support import labels_small, layouts, small
from tests.test_fuzz import damaged, spots

bounded = settings(
    max_examples=100 if settings.get_current_profile_name() == "fuzz" else 12,
    database=None,
)


def of_shape(name: str) -> Callable[[Path], Path]:
    """A layout of the tests of shapes, in a folder of its own."""
    return lambda folder: folder / shapes.laid(folder, name)[0]


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    **layouts.GRADED,
    "squad": of_shape("SQuAD"),
    "marked": of_shape("right and wrong texts"),
    "quoted": of_shape("question, answer and context rows"),
    "msmarco": of_shape("MS MARCO"),
    "hotpotqa": of_shape("HotpotQA"),
    "markdown": small.dataset,
    "hotpotqa-hub": of_shape("HotpotQA of the hub"),
    "xlsx": of_shape("Excel, named sheets"),
    "arrow": of_shape("save_to_disk, parts"),
    "autorag": layouts.of_tool("qa.parquet", "corpus.parquet"),
    "llama-index": layouts.of_tool("qa_finetune.json"),
    "llama-index-rag": layouts.of_tool("rag_dataset.json"),
    "ragas": layouts.of_tool("ragas.jsonl"),
    "langsmith": layouts.of_tool("langsmith.jsonl"),
    "phoenix": layouts.of_tool("phoenix.json"),
    "langfuse": layouts.of_tool("langfuse.json"),
}
CONTEXTS = {"ragas", "llama-index-rag", "langsmith", "phoenix", "langfuse"}
"""Those that have no documents of their own."""


def files(folder: Path) -> list[Path]:
    """A file, or all files below a folder."""
    return (
        [folder]
        if folder.is_file()
        else sorted(path for path in folder.rglob("*") if path.is_file())
    )


def unplaced_errors(
    place: Path, spot: tuple[float, float, bytes], read_files: Callable[[], object]
) -> list[str]:
    """Damage each file alone, and read all; the errors that do not name their place."""
    errors: list[str] = []
    for path in files(place):
        raw = path.read_bytes()
        try:
            path.write_bytes(damaged(raw, spot))
            read_files()
        except InputError as error:
            if place.name not in str(error) and path.name not in str(error):
                errors.append(str(error))
        finally:
            path.write_bytes(raw)
    return errors


def laid_out(name: str, folder: Path) -> DatasetReference:
    """A layout, with its format named."""
    folder.parent.mkdir(exist_ok=True)
    reference = DatasetReference(
        LAYOUTS[name](folder), documents="docs.jsonl" if name in CONTEXTS else None
    )
    return replace(reference, format=load_dataset(reference).format)


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request, tmp_path_factory):
    return laid_out(request.param, tmp_path_factory.mktemp("layout") / "data")


@bounded
@given(spots)
def test_data_sets_of_every_form(layout, spot):
    assert not unplaced_errors(
        layout.path, spot, lambda: list(load_dataset(layout).documents())
    )


def test_tables_whose_format_names_no_column_of_documents_say_what_is_missing(tmp_path):
    reference = laid_out("llama-index-rag", tmp_path / "set" / "data")
    text = reference.path.read_text(encoding="utf-8")
    reference.path.write_text(text.replace("reference_contexts", "quotes", 1))
    with pytest.raises(InputError, match="'reference_contexts' is missing"):
        load_dataset(reference)


def test_every_reader_of_data_sets_has_a_layout(tmp_path):
    forms = {laid_out(name, tmp_path / name / "data").format for name in LAYOUTS}
    assert forms == READERS_BY_FORMAT.keys() - {"hub", "ir_datasets"}


BY = {"judge": "j", "prompt": "p"}
ANSWER = {
    "response": "It is so [1].",
    "contexts": [{"id": "c1", "text": "a"}, {"id": "c2", "text": "b"}],
}
DRAFTS = [DraftQuery(f"q{i}", "what?", "short", "n", "llm:m", "d") for i in range(3)]
SCORES = "".join(f"{name},q{i},P@1,0.{i}\n" for name in "ab" for i in range(5))
OTHERS: dict[
    str, tuple[shapes.Files | Callable[[Path], object], Callable[[Path], object]]
] = {
    "judgments": (
        {
            "said.jsonl": [
                labels_small.row(),
                labels_small.row(query_id="q1", grade=None, judge="bob"),
            ]
        },
        lambda folder: read_judgments([folder / "said.jsonl"]),
    ),
    "preferences": (
        {
            "prefer.jsonl": [
                {
                    "query_id": f"q{number}",
                    "choice": "left",
                    "round": 1,
                    "judge": "ann",
                    "page": "p",
                    "depth": 5,
                    "seed": 0,
                }
                for number in range(3)
            ]
        },
        lambda folder: read_preferences([folder / "prefer.jsonl"]),
    ),
    "questions": (
        {"queries.jsonl": [{"id": f"q{n}", "query": f"what {n}?"} for n in range(3)]},
        lambda folder: read_questions(folder / "queries.jsonl"),
    ),
    "pools": (
        lambda folder: write_pool(folder / "pool.jsonl", labels_small.pool()),
        lambda folder: read_pool(folder / "pool.jsonl"),
    ),
    "drafts": (
        lambda folder: (
            write_drafts(folder / "drafts.jsonl", DRAFTS),
            labels_small.write(folder / "kept.jsonl", [labels_small.judgment()]),
        ),
        lambda folder: select_kept_drafts(
            folder / "drafts.jsonl", [folder / "kept.jsonl"]
        ),
    ),
    "scores": (
        {"scores.csv": f"retriever,query_id,measure,value\n{SCORES}"},
        lambda folder: read_score_file(folder / "scores.csv"),
    ),
    "ids": (
        {"ids.txt": "q1\nq2\n"},
        lambda folder: read_listed_lines(folder / "ids.txt", "query id"),
    ),
    "answers": (
        {"mine.jsonl": [{"query_id": query, **ANSWER} for query in ("q1", "q2")]},
        lambda folder: read_systems(folder, {"q1", "q2"}),
    ),
    "readings": (
        {
            "claims.jsonl": [{"text": "t", "claims": ["c"], **BY}],
            "verdicts.jsonl": [
                {"claim": "c", "passage": "0", "verdict": "entailed", **BY}
            ],
            "opinions.jsonl": [{"task": "rating", "of": ["0"], "answer": 1, **BY}],
            "passages.jsonl": [{"id": "d", "passage": "0"}],
        },
        lambda folder: (
            read_readings(folder, JudgeIdentity("j", "p")),
            read_passages(folder),
        ),
    ),
}
"""Files, or what writes them, and what reads them."""


@pytest.fixture(scope="module", params=OTHERS)
def other(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    contents, read_files = OTHERS[request.param]
    contents(folder) if callable(contents) else shapes.lay(folder, contents)
    read_files(folder)
    return folder, read_files


@bounded
@given(spots)
def test_other_files(other, spot):
    folder, read_files = other
    assert not unplaced_errors(folder, spot, lambda: read_files(folder))
