"""The groups of failures are the counts of scores.csv; the picture holds every query once."""

import re
from dataclasses import replace

import pytest

import harness
from harness import records
from harness.report.failures import causes, groups, words
from harness.report.view import view_of
from tests.support import small


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """Four queries that words find, two that nothing finds among the first three hits."""
    folder = tmp_path_factory.mktemp("failure_map")
    path = small.experiment(folder, more='[relevance]\ngrades = "linear"\n')
    source = path.read_text(encoding="utf-8").replace('"Success@1"', '"Success@1", "Success@3", "Success@5"')
    path.write_text(source, encoding="utf-8")
    return view_of(harness.run(path, harness.Options(results=folder / "results")))


def counted(view, measure):
    table = view.results.scores
    return table[table["measure"] == measure].pivot(index="query_id", columns="retriever", values="value") > 0


def test_groups_are_counted_as_in_scores_csv(view):
    near, far = counted(view, "Success@3"), counted(view, "Success@5")
    hits = near.sum(axis=1)
    expected = {"nobody": hits == 0, "deep": (hits == 0) & far.any(axis=1)}
    expected |= {f"only-{name}": (hits == 1) & near[name] for name in near.columns}
    members = {group.key: {view.ids[place] for place in group.places} for group in groups(view)}
    for key, mask in expected.items():
        assert members.get(key, set()) == set(mask[mask].index), key


def test_every_miss_has_a_cause_and_no_hit_has_one(view):
    near, far = counted(view, "Success@3"), counted(view, "Success@5")
    found = causes(view)
    for place, query in enumerate(view.ids):
        missed = {name for name in view.ranked if not near.loc[query, name]}
        assert set(found.get(place, {})) == missed
        for name in missed:
            assert bool(re.search(r"rank \d", found[place][name])) == far.loc[query, name]
            parts = [part for part in view.resolved.made_of(name) if near.loc[query, part]]
            assert found[place][name].startswith("lost") == bool(parts)


def test_no_word_in_common_is_of_any_script():
    assert words("Cats and DOGS") & words("a dog, dogs")
    assert not words("feline") & words("a cat")
    assert words("休暇の日数") & words("年次休暇")
    assert not words("休暇") & words("給与")


def test_truncated_answers_are_a_group_of_their_own(view):
    manifest = view.manifest
    cut = records.RetrieverLedger(notes={"truncated": tuple(small.TEXTS)})
    ledger = replace(manifest.ledger, retrievers={**manifest.ledger.retrievers, "hashing": cut})
    altered = view_of(replace(view.results, manifest=replace(manifest, ledger=ledger)))
    near = counted(view, "Success@3")["hashing"]
    members = {group.key: len(group.places) for group in groups(altered)}
    assert members.get("cut-hashing", 0) == int((~near).sum())
    assert "cut-bm25" not in members
