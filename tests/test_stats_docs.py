"""What the statistics' documentation shows is what the program does, and what the program says stands there."""

import doctest
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from harness.scoring.plans import PlannedPair
from harness.stats import (
    Facts,
    Look,
    Looks,
    Optimism,
    Settings,
    compare,
    gate,
    interval_note,
    judged_note,
    look_at,
    look_sentence,
    needed_sentence,
    optimism_sentence,
    pair_sentence,
    plan_sentence,
    resolution_sentence,
    second_look_sentence,
    significance_sentence,
    whole,
    whole_sentences,
)
from harness.stats.sentences import asked_sentence, judged_only_sentence
from tests import sentences

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["articles-wilcoxon.md", "statistics.md"])
def test_the_examples_of_the_page_run(page):
    ran = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert ran.attempted > 0
    assert ran.failed == 0


READERS = {".py": sentences.in_code, ".html": sentences.in_template, ".js": sentences.in_script}


@pytest.mark.parametrize(
    "path", [*sentences.SHOWN, *sentences.TEMPLATES, *sentences.SCRIPTS], ids=lambda path: path.name
)
def test_every_phrase_that_the_program_can_print_stands_in_the_documentation(path):
    texts = READERS[path.suffix](path)
    said, there = [phrase for text in texts for phrase in sentences.phrases(text)], sentences.documented()
    assert [phrase for phrase in dict.fromkeys(said) if phrase not in there] == []


def test_phrases_are_taken_from_code_and_from_templates(tmp_path):
    code = tmp_path / "code.py"
    code.write_text(
        '"""No sentence of the report."""\n'
        "def f(n):\n"
        '    """Nor is this one."""\n'
        '    if n < 1:\n        raise InputError(Problem("n", f"{n} is too small a number"))\n'
        '    return f"{n:,} of them are worth " + "a second look."\n'
    )
    taken = [phrase for text in sentences.in_code(code) for phrase in sentences.phrases(text)]
    assert sorted(taken) == ["a second look", "of them are worth"]
    page = tmp_path / "page.html"
    page.write_text(
        '<h2>A title of it</h2><p class="x">All <b>{{ n }}</b> were <i>read and kept</i>.'
        "{% if n %} No more came.{% endif %}</p>"
    )
    taken = [phrase for text in sentences.in_template(page) for phrase in sentences.phrases(text)]
    assert taken == ["were read and kept", "No more came"]
    script = tmp_path / "page.js"
    script.write_text(
        'say(`${n} were read again`, n > 1 ? `${n === 2 ? "Two of them came" : "None"} twice` : ".some css path");'
    )
    taken = [phrase for text in sentences.in_script(script) for phrase in sentences.phrases(text)]
    assert taken == ["were read again", "Two of them came"]


def samples() -> Iterator[dict[str, np.ndarray]]:
    """Scores of all kinds: clear, close, equal, zero, few, skewed, and one retriever alone."""
    rng = np.random.default_rng(3)
    for n in (1, 8, 30):
        base = np.round(rng.random(n), 2)
        near = np.clip(base + np.round(rng.normal(0, 0.1, n), 2), 0, 1)
        yield {"x": base}
        yield {"x": base, "y": base, "z": near}
        yield {"x": base, "y": np.clip(base - 0.2, 0, 1), "z": near}
        yield {"x": base * 0, "y": base * 0}
        yield {"x": base, "y": np.where(np.arange(n) % 10 == 0, 0.0, np.clip(base + 0.02, 0, 1)), "z": base}
        yield {"x": np.clip(base + 0.2, 0, 1), "y": base}
        yield {"x": base, "y": near, "z": np.clip(base + np.round(rng.normal(0, 0.2, n), 2), 0, 1)}


def settings() -> Iterator[Settings]:
    yield Settings(margin=0.1)
    yield Settings(correction="tukey", margin=0.1)
    yield Settings(test="t")
    yield Settings(test="sign", margin=0.1)
    yield Settings(by_people=False)


def said_of(scores: dict[str, np.ndarray], chosen: Settings, facts: Facts) -> Iterator[str]:
    """Everything that the statistics say of one measure."""
    rows = compare(scores, measure="m", settings=chosen, facts=facts)
    result = whole(scores, rows, measure="m", settings=chosen, facts=facts)
    for complete in (True, False):
        yield from whole_sentences(result, chosen, complete=complete)
    yield from (pair_sentence(row, chosen) for row in rows)
    yield significance_sentence(rows, chosen)
    yield interval_note(rows)
    for state in result.unresolved.values():
        yield resolution_sentence(state.detectable, "x and y", "60 queries")
        yield needed_sentence(state.needed, "x and y")
        yield PlannedPair("x", "y", state.plan, clusters=facts.clusters is not None).sentence()
        if state.plan is not None:
            yield plan_sentence(state.plan, "x and y", clusters=True)


def test_every_sentence_that_the_statistics_say_is_one_of_the_documented_ones():
    known = sentences.templates()
    spoken = {
        optimism_sentence(Optimism("x", 0.7, 0.02, 0.68), 3),
        judged_note("x", "y", 0.9, 0.5),
        second_look_sentence(3),
        judged_only_sentence(),
        asked_sentence(60, 12),
        *(look_sentence(look, n) for n in (60, 70) if isinstance(look := planned(n), Look)),
    }
    for scores in samples():
        n = len(scores["x"])
        identical = frozenset({frozenset(("x", "y"))}) if "y" in scores and (scores["x"] == scores["y"]).all() else ()
        for chosen in settings():
            clusters = [str(i // 2) for i in range(n)] if chosen.test == "sign" else None
            spoken |= set(said_of(scores, chosen, Facts(identical=frozenset(identical), clusters=clusters)))
        for margin, span in product((0.1, 1e-6), (1.0, None)):
            if "y" in scores:
                same = Facts(identical=frozenset({frozenset(("challenger", "baseline"))} if identical else ()))
                verdict = gate(scores["y"], scores["x"], margin=margin, span=span, facts=same)
                spoken.add(verdict.reason.rpartition(" (difference")[0])
    unknown = [one for one in sorted(spoken) if one and not any(template.fullmatch(one) for template in known)]
    assert not unknown, "\n".join(unknown)
    # So that a template which stands for nothing any more does not stay.
    first = sentences.templates("### The verdict", "### A comparison")
    silent = [one.pattern for one in first if not any(one.fullmatch(said) for said in spoken)]
    assert not [one for one in silent if one.endswith(".")], "\n".join(silent)


def planned(n: int) -> Look | None:
    return look_at(Settings(looks=Looks((60, 150))), n)
