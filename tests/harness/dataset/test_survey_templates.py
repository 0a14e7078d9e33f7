"""The survey templates are the files whose READMEs tell their counts, pairs, labels and agreement."""

from pathlib import Path

import pytest

from harness.dataset.load import DatasetReference, load

DATASETS = Path(__file__).parents[3] / "datasets"
QUERY_FILES = ("queries.json", "queries-extended.json", "labels-a.json", "labels-b.json")
DIGESTS = {
    "en": ("d9ace5384bb9e382", "5e85689ba02fa590", "b75708568daef746"),
    "ja": ("69e779f698a6a517", "c08ca2edaaf7296f", "115a211edcd1bd63"),
}
"""Of documents and queries, and of either labeller. Of these very bytes a program that is in the history of this file
checked what the READMEs say: the form of all templates, that the languages are translations of each other, that no
template and no query repeats another, and every figure. Whoever changes them checks that anew."""


@pytest.mark.parametrize("language", DIGESTS)
def test_the_files_are_those_of_which_the_readme_tells(language):
    folder = DATASETS / f"survey-templates-{language}"
    asked = (QUERY_FILES[:2], QUERY_FILES[2:3], QUERY_FILES[3:])
    assert tuple(load(DatasetReference(folder, queries=names)).digest[:16] for names in asked) == DIGESTS[language]
    others = {path.name for path in folder.iterdir() if len(path.stem) != 26}
    assert others == {*QUERY_FILES, "README.md", "LICENSE"}
    assert "CC BY 4.0" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "asked"), [("en", "en"), ("ja", "en")])
def test_harness_reads_them_also_across_languages(language, asked):
    names = tuple(f"../survey-templates-{asked}/{name}" for name in QUERY_FILES[:2])
    dataset = load(DatasetReference(DATASETS / f"survey-templates-{language}", queries=names))
    assert (dataset.count, len(dataset.queries)) == (182, 13 + 125)
    assert not any(dataset.ledger.values())
    assert dataset.queries[0].fields["tags"] == "article"
