"""The page docs/how-to/no-labels.md: every command is run, and the page is judged."""

from itertools import chain
from pathlib import Path

import pytest

from tests.support import exported
from tests.test_docs import NO_LABELS, PROJECT, blocks, need_the_local_model, run, shown

pytestmark = pytest.mark.slow
ANSWERS = {
    "leave": ("how many holidays", "can I take days off", "how early do I have"),
    "leaving": ("vacation I did not take", "resignation", "notice period", "last day"),
    "illness": ("I have the flu", "note from a physician"),
    "parental-leave": ("having a baby",),
    "expenses": ("money back for a hotel", "first class", "hand in receipts"),
    "remote-work": ("at home on Fridays", "home office", "which hours"),
    "security": ("phone was stolen", "password"),
    "training": ("learning Spanish", "conferences"),
}
"""Document of the tutorial -> parts of the questions that it answers."""


def handbook(folder: Path) -> dict[str, str]:
    """Write the tutorial's documents, and return their texts."""
    texts: dict[str, str] = {}
    for block in blocks(PROJECT / "docs" / "tutorial.md"):
        if block.title.startswith("handbook/") and block.title.endswith(".md"):
            path = folder / block.title.removeprefix("handbook/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            texts[path.stem] = block.text.strip()
    return texts


def test_the_page(tmp_path, monkeypatch, capsys):
    need_the_local_model()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    texts = handbook(tmp_path / "my-documents")
    parts_of_text = {texts[name]: parts for name, parts in ANSWERS.items()}

    def grade(question: str, text: str) -> int:
        return 2 if any(part in question for part in parts_of_text[text]) else 0

    for block in blocks(NO_LABELS):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
    for command in shown_commands(NO_LABELS):
        if "--labels" in command.command:
            page = Path("my-documents-try/judge.html")
            exported.judgments(page, Path("judgments.jsonl"), grade)
        if "results/handbook" in command.command:
            # The page compares the run of the tutorial, which has labels.
            handbook_run(tmp_path, capsys)
        run(command, capsys)
    assert Path("my-documents-try/questions/judgments.jsonl").is_file()


def shown_commands(page: Path):
    """Return the commands of a page, in their order."""
    consoles = (block for block in blocks(page) if block.language == "console")
    return chain.from_iterable(map(shown, consoles))


def handbook_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the tutorial's experiment."""
    handbook(folder / "handbook")
    for block in blocks(PROJECT / "docs" / "tutorial.md"):
        if block.title == "handbook/queries.json":
            (folder / block.title).write_text(block.text, encoding="utf-8")
    for line in ("$ harness init handbook", "$ harness run handbook.toml --quiet"):
        for command in shown(blocks_of(line)):
            run(command, capsys)


def blocks_of(line: str):
    """Return a block of one command."""
    from tests.test_docs import Block

    return Block("console", "", f"{line}\n")
