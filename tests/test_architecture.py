"""The rules of the house, read off the syntax trees."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LAYERS = [
    {
        "harness.english",
        "harness.measures",
        "harness.stats",
        "harness.pages",
        "harness.shipped_files",
    },
    {"harness.dataset"},
    {"harness.experiment"},
    {"harness.identity"},
    {"harness.records"},
    {"harness.scoring"},
    {"harness.evaluation"},
    {"harness.wording"},
    {"harness.build"},
    {"harness.writing"},
    {"harness.answers", "harness.labels", "harness.init"},
    {"harness.preflight"},
    {"harness.running", "harness.report"},
    {"harness.export", "harness.pipeline"},
    {"harness.several_sets", "harness.reproduce", "harness.without_labels"},
    {"harness.console"},
    {"harness.notebook", "harness.cli"},
    {"harness.__main__"},
]
"""From what is imported to what imports: a module uses its own layer's packages never,
those before it freely.
"""
FACES = {
    "harness.dataset": {
        "harness.dataset",
        "harness.dataset.check_corpus",
        "harness.dataset.choose_reader",
        "harness.dataset.columns",
        "harness.dataset.convert",
        "harness.dataset.dataset",
        "harness.dataset.events",
        "harness.dataset.extras",
        "harness.dataset.file",
        "harness.dataset.judging_columns",
        "harness.dataset.judgment",
        "harness.dataset.listing",
        "harness.dataset.load",
        "harness.dataset.merge_judgments",
        "harness.dataset.query_tables",
        "harness.dataset.quoted_texts",
        "harness.dataset.read_problems",
        "harness.dataset.readers.dataset_folder",
        "harness.dataset.readers.markdown_folder",
        "harness.dataset.readers.text_documents",
        "harness.dataset.row",
        "harness.dataset.rows",
        "harness.dataset.settings",
        "harness.dataset.source",
        "harness.dataset.table_source",
        "harness.dataset.text_rows",
        "harness.dataset.try_folder",
        "harness.dataset.usual_names",
        "harness.dataset.written_values",
    },
    "harness.experiment": {
        "harness.experiment",
        "harness.experiment.agent_config",
        "harness.experiment.class_options",
        "harness.experiment.composed_configs",
        "harness.experiment.load",
        "harness.experiment.retriever_config",
        "harness.experiment.retriever_schema",
        "harness.experiment.table_values",
        "harness.experiment.value_labels",
        "harness.experiment.vector_configs",
    },
    "harness.records": {
        "harness.records",
        "harness.records.csv_table",
        "harness.records.data_sets_csv",
        "harness.records.documents_file",
        "harness.records.environment",
        "harness.records.facts",
        "harness.records.jsonl",
        "harness.records.judge_files",
        "harness.records.judge_readings",
        "harness.records.results",
        "harness.records.staging",
    },
    "harness.report": {
        "harness.report.charts.axes",
        "harness.report.index",
        "harness.report.numbers",
        "harness.report.page",
        "harness.report.results_listing",
        "harness.report.scores_page",
        "harness.report.sets_page",
        "harness.report.write",
    },
}
"""What other packages may import of a package; one that is not named here shows every
module.
"""
LEAVES = {
    "retrievers.errors",
    "retrievers.files.cache_folder",
    "retrievers.files.text_files",
    "retrievers.files.trec_columns",
    "retrievers.files.run_scores",
    "retrievers.files.trec_files",
    "retrievers.files.trec_lines",
    "retrievers.ids",
    "retrievers.meter",
    "retrievers.options.tables",
    "retrievers.options.user_code",
    "retrievers.passage",
    "retrievers.ranking",
    "retrievers.remedy",
    "retrievers.texts.languages",
    "retrievers.texts.word_tokens",
    "retrievers.types",
}
BUILDERS = {
    f"harness.{package}"
    for package in (
        "answers",
        "labels",
        "build",
        "preflight",
        "running",
        "pipeline",
        "several_sets",
        "reproduce",
        "notebook",
        "console",
        "cli",
    )
}
"""Who may import more of retrievers than the leaves: what builds them, or opens the
cache for them.
"""
TABLE_USERS = {"harness.experiment"}
"""Who may look up kinds and options, without building anything."""
NUMBERS_ONLY = {"harness.measures", "harness.stats"}


def modules(project: Path) -> Iterator[tuple[str, ast.Module]]:
    for top in ("harness", "retrievers"):
        for file in sorted((project / top).rglob("*.py")):
            name = (
                file.relative_to(project)
                .with_suffix("")
                .as_posix()
                .replace("/", ".")
                .removesuffix(".__init__")
            )
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def imports(name: str, tree: ast.Module, module_names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in module_names else str(node.module)


def room(name: str) -> str:
    return ".".join(name.split(".")[:2])


@pytest.fixture(scope="module")
def trees(project: Path) -> dict[str, ast.Module]:
    return dict(modules(project))


@pytest.fixture(scope="module")
def graph(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    return {name: set(imports(name, tree, set(trees))) for name, tree in trees.items()}


def test_imports_point_one_way_and_a_wing_is_entered_by_its_face(
    graph: dict[str, set[str]],
) -> None:
    level = {module: number for number, row in enumerate(LAYERS) for module in row}
    for name, used in graph.items():
        if not name.startswith("harness."):
            continue
        assert room(name) in level, f"{name} has no level: give it one"
        for other in used:
            if other.startswith("harness.") and room(other) != room(name):
                assert level[room(other)] < level[room(name)], f"{name} imports {other}"
                face = FACES.get(room(other), {other})
                assert other in face, (
                    f"{name} imports {other}, past the face of {room(other)}"
                )


def test_no_file_is_loose(project: Path) -> None:
    assert {file.name for file in (project / "harness").glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "cli.py",
        "english.py",
        "identity.py",
        "pages.py",
        "pipeline.py",
        "reproduce.py",
        "several_sets.py",
        "shipped_files.py",
    }


def test_files_of_a_wing_form_no_circle(graph: dict[str, set[str]]) -> None:
    waiting = {
        name: {other for other in used if other in graph and other != name}
        for name, used in graph.items()
    }
    while ready := {
        name for name, used in waiting.items() if not used & waiting.keys()
    }:
        waiting = {name: used for name, used in waiting.items() if name not in ready}
    assert not waiting, f"imports form a circle among {sorted(waiting)}"


def test_retrievers_know_nothing_of_the_harness_and_only_builders_reach_into_them(
    graph: dict[str, set[str]],
) -> None:
    for name, used in graph.items():
        assert name.startswith("harness") or not [
            imported for imported in used if imported.split(".")[0] == "harness"
        ], name
        if name.startswith("harness.") and room(name) not in BUILDERS | TABLE_USERS:
            assert {
                other for other in used if other.startswith("retrievers")
            } <= LEAVES, name


def test_measures_and_statistics_use_numbers_alone(graph: dict[str, set[str]]) -> None:
    for name, used in graph.items():
        if room(name) in NUMBERS_ONLY:
            foreign = {
                other
                for other in used
                if room(other) != room(name) and other not in LEAVES
            }
            roots = {other.split(".")[0] for other in foreign} - sys.stdlib_module_names
            assert roots <= {"numpy", "scipy"}, f"{name}: {foreign}"


CLIENTS = (
    "torch sentence_transformers openai boto3 qdrant_client bm25s httpx grpc jinja2 "
    "altair vl_convert matplotlib"
)
QUICKSTART = "experiments/quickstart.toml"
SPARING = [
    ("--help", f"{CLIENTS} numpy pandas scipy pydantic sacrebleu"),
    (
        f"check {QUICKSTART} --results HERE",
        f"{CLIENTS} pandas scipy.optimize scipy.stats",
    ),
    ("score HERE/qrels HERE/run", f"{CLIENTS} pandas scipy.optimize scipy.stats"),
    (
        "init datasets/survey-templates-en --output HERE/new.toml",
        CLIENTS.replace("jinja2 ", ""),
    ),
]
"""Commands, each of which loads no less than those before it, and what none of them may
have loaded by then.
"""
WATCHED = """
import sys
import harness.console.label_commands
from harness.cli import main
for words, unused in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        main(words.split())
    except SystemExit as ended:
        loaded = [name for name in unused.split() if name in sys.modules]
        print(ended.code, loaded, file=sys.stderr)
"""


def test_a_command_loads_only_what_it_uses(project: Path, tmp_path: Path) -> None:
    """Each takes half a second and more: nobody waits for what is not needed."""
    (tmp_path / "qrels").write_text("q 0 d 1\n", encoding="utf-8")
    (tmp_path / "run").write_text("q Q0 d 1 1.0 r\n", encoding="utf-8")
    words = [
        word.replace("HERE", str(tmp_path)) for command in SPARING for word in command
    ]
    process = subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        capture_output=True,
        text=True,
        cwd=project,
    )
    assert [line for line in process.stderr.splitlines() if line.endswith("]")] == [
        "0 []"
    ] * len(SPARING), process.stderr


def test_every_exported_name_exists_once(graph: dict[str, set[str]]) -> None:
    import importlib

    for name in graph:
        exported = getattr(importlib.import_module(name), "__all__", None)
        if exported is not None:
            assert len(set(exported)) == len(exported), name
            assert all(
                hasattr(importlib.import_module(name), exported_name)
                for exported_name in exported
            ), name


def first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").split("\n")[0]


def test_the_first_line_of_a_module_names_one_subject(
    trees: dict[str, ast.Module],
) -> None:
    lines = {name: first_line(tree) for name, tree in trees.items()}
    unclear = {
        name: line
        for name, line in lines.items()
        if not line.endswith(".") or " and " in line or len(line.split()) > 12
    }
    assert not unclear, 'a first line has a full stop, at most 12 words, and no "and"'


def test_no_two_modules_name_the_same_subject(trees: dict[str, ast.Module]) -> None:
    subjects: dict[str, list[str]] = {}
    for name, tree in trees.items():
        subjects.setdefault(first_line(tree).casefold(), []).append(name)
    assert not [names for names in subjects.values() if len(names) > 1]
