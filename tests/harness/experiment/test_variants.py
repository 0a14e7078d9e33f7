"""Variants of one encoder, and grids of settings.

They are written out as retrievers, run, embedded once, and chosen from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.evaluation.evaluation_file import read_or_evaluate
from harness.experiment import parse_experiment
from harness.experiment.value_labels import label_axis, value_labels
from harness.pipeline import run
from harness.preflight.plan import RunPlan
from harness.records import Results
from harness.report.numbers import difference_text
from harness.report.sections.decision import first_screen
from harness.report.view import build_view
from harness.reproduce import reproduce
from harness.running.options import RunOptions
from harness.wording.conclusion import conclusion_sentences
from harness.wording.sweep_choice import alike_sentence
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.errors import InputError
from tests.support import small, tiny
from tests.support.small import Call, planned, refusal

BASE: dict[str, Any] = {
    "name": "x",
    "dataset": "d",
    "primary": "RR",
    "measures": ["RR"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    prompts = {"query": "query: ", "fast": "the fast ", "document": "passage: "}
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts=prompts).as_posix()


@pytest.fixture(autouse=True)
def bare(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "test-key-0123456789")


def experiment(
    folder: Path, encoder: str, variants: str = "", name: str = "small"
) -> Path:
    block = (
        '[[retrievers]]\nname = "m"\n'
        f"encoder = {{ {encoder} }}\nvariants = {{ {variants} }}\n"
    )
    return small.experiment(folder, retrievers=block, name=name)


def test_a_variant_is_the_encoder_with_its_options(tmp_path: Path, model: str) -> None:
    encoder = f'kind = "sentence-transformers", model = "{model}", device = "cpu"'
    variants = (
        'plain = { query_prompt = "", document_prompt = "" }, '
        'fast = { query_prompt_name = "fast" }'
    )
    path = experiment(tmp_path, encoder, variants)
    encoders = {
        (row.retriever, row.stage): row.texts
        for row in planned(path, results=tmp_path).rows
    }
    assert encoders == {  # the documents of "fast" are those of "m"
        ("m", "embed-documents"): 6,
        ("m", "embed-queries"): 6,
        ("m-plain", "embed-documents"): 6,
        ("m-plain", "embed-queries"): 6,
        ("m-fast", "embed-queries"): 6,
    }
    results = run(path, RunOptions(tmp_path / "out"))
    facts = {
        name: dict(results.manifest.retrievers[name].provenance.model.settings)
        for name in results.retrievers
    }
    sent = {
        name: (
            retriever_facts.get("query_prompt"),
            retriever_facts.get("document_prompt"),
        )
        for name, retriever_facts in facts.items()
    }
    assert sent == {
        "m": ("query: ", "passage: "),
        "m-plain": ("", ""),
        "m-fast": ("the fast ", "passage: "),
    }
    own_results = run(
        experiment(tmp_path, f'{encoder}, query_prompt = "the fast "', name="own"),
        RunOptions(tmp_path / "out"),
    )
    assert (
        own_results.rankings("m") == results.rankings("m-fast") != results.rankings("m")
    )


@pytest.mark.parametrize(
    ("cls", "option", "value"),
    [
        (OpenAIEncoder, "prompt", "p"),
        (OpenAIEncoder, "extra", {"a": 1}),
        (GeminiEncoder, "prompt", "p"),
        (SentenceTransformerEncoder, "prompt", "p"),
        (SentenceTransformerEncoder, "prompt_name", "fast"),
    ],
)
def test_vectors_are_shared_where_a_role_is_alike(
    model: str, cls: Any, option: str, value: Any
) -> None:
    where = (
        {"model": model}
        if cls is SentenceTransformerEncoder
        else {"model": "m", "base_url": "http://127.0.0.1:9"}
    )
    sides = ({}, {f"query_{option}": value}, {f"document_{option}": value})
    plain, asking, writing = (cls(**where, **side) for side in sides)
    assert (
        plain.fingerprint
        != asking.fingerprint
        != writing.fingerprint
        != plain.fingerprint
    )
    assert plain.fingerprint_for("document") == asking.fingerprint_for("document")
    assert plain.fingerprint_for("query") == writing.fingerprint_for("query")
    assert plain.fingerprint_for("document") != writing.fingerprint_for("document")
    assert plain.fingerprint_for("query") != asking.fingerprint_for("query")


def test_without_prompts_a_model_of_this_machine_has_one_fingerprint(
    model: str,
) -> None:
    """Vectors that an earlier version cached are found."""
    plain = SentenceTransformerEncoder(model=model)
    assert plain.fingerprint_for("document") == plain.fingerprint
    assert plain.fingerprint_for("query") == plain.fingerprint


def test_a_prompt_that_the_model_has_not_is_told_with_those_that_it_has(
    model: str,
) -> None:
    with pytest.raises(
        InputError,
        match=r"query_prompt_name.*no prompt 'slow'"
        r".*it has 'document', 'fast', 'query'",
    ):
        SentenceTransformerEncoder(model, query_prompt_name="slow")
    with pytest.raises(InputError, match="is given twice"):
        SentenceTransformerEncoder(model, query_prompt_name="fast", query_prompt="x")


BM25 = {"name": "words", "kind": "bm25"}
DENSE = {
    "name": "dense",
    "encoder": {"kind": "hashing", "dimensions": 64},
}
HYBRID = {"name": "hybrid", "kind": "fusion", "of": ["words", "dense"]}


def test_a_grid_is_written_out_and_what_is_made_of_it_too() -> None:
    sweep = {
        "default": "words",
        "of": "hybrid",
        "dense.encoder.dimensions": [64, 128],
        "dense.chunk.size": [0, 50],
    }
    experiment = parse_experiment(
        {**BASE, "retrievers": [BM25, DENSE, HYBRID], "sweep": sweep}
    )
    blocks = {block.name: block.model_dump() for block in experiment.retrievers}
    assert list(blocks)[
        3:
    ] == [  # a configuration that is the retriever as it is written is that retriever
        "dense[64, 50]",
        "hybrid[64, 50]",
        "dense[128, whole]",
        "hybrid[128, whole]",
        "dense[128, 50]",
        "hybrid[128, 50]",
    ]
    assert blocks["hybrid[128, 50]"]["of"] == ("words", "dense[128, 50]")
    assert blocks["dense[128, 50]"]["chunk"]["size"] == 50
    whole_documents = blocks["dense[128, whole]"]
    assert (whole_documents["chunk"], whole_documents["encoder"]["dimensions"]) == (
        None,
        128,
    )
    sweep = {"default": "words", "of": "words", "k1": [0.9, 2], "b": [0.4]}
    experiment = parse_experiment({**BASE, "retrievers": [BM25], "sweep": sweep})
    assert experiment.sweep is not None and experiment.baseline == "words"
    assert experiment.sweep.configurations == {
        "words": {"k1": 0, "b": 0},
        "words[2, 0.4]": {"k1": 1, "b": 0},
    }
    assert value_labels(experiment.sweep) == {"k1": ("0.9", "2"), "b": ("0.4",)}


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (("query: ", "query ", "query-2"), ("query-1", "query-3", "query-2")),
        (("Query", "query"), ("Query-1", "query-2")),
    ],
)
def test_no_two_values_of_an_axis_have_one_label(
    values: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    """Names of retrievers must differ by more than case."""
    assert label_axis(values, "encoder.query_prompt") == labels


def test_a_circle_of_retrievers_that_a_sweep_varies_is_reported() -> None:
    circle = [
        {"name": "a", "kind": "fusion", "of": ["b", "words"]},
        {"name": "b", "kind": "fusion", "of": ["a", "words"]},
    ]
    sweep = {"default": "words", "of": "a", "words.k1": [0.9, 2]}
    tables = {**BASE, "retrievers": [BM25, *circle], "sweep": sweep}
    with pytest.raises(InputError, match="use each other in a circle: a, b, a"):
        parse_experiment(tables)


def variant(variants: Any, encoder: Any = None) -> dict[str, Any]:
    return {
        "retrievers": [
            {
                "name": "m",
                "encoder": encoder or {"kind": "hashing"},
                "variants": variants,
            }
        ]
    }


LOCAL = {"kind": "sentence-transformers", "model": "a/b"}


POTION = {"name": "potion", "encoder": {"kind": "hashing"}}
MIXED = {"name": "mixed", "kind": "fusion", "of": ["words", "potion"]}


@pytest.mark.parametrize(
    ("of", "axes", "names"),
    [
        (
            ["dense", "potion"],
            {"chunk.size": [0, 300]},
            ["dense", "dense[300]", "potion", "potion[300]"],
        ),
        # Without a chunk there is no overlap, whichever axis is first.
        (
            ["dense"],
            {"chunk.size": [0, 300], "chunk.overlap": [0, 20]},
            ["dense", "dense[300, 0]", "dense[300, 20]"],
        ),
        # A fusion has no chunk: its parts that have one vary together.
        (["mixed"], {"chunk.size": [0, 300]}, ["mixed", "mixed[300]"]),
        # Only BM25 has k1, only the encoder of potion has dimensions.
        (
            ["words", "potion"],
            {"k1": [0.5, 2], "encoder.dimensions": [8, 16]},
            ["words[0.5]", "words[2]", "potion[8]", "potion[16]"],
        ),
        # A fusion has a floor of its own: its parts keep theirs.
        (["mixed"], {"floor": [0.1, 0.2]}, ["mixed[0.1]", "mixed[0.2]"]),
    ],
)
def test_an_axis_varies_every_retriever_that_has_the_key(of, axes, names):
    sweep = {"default": "words", "of": of, **axes}
    retrievers = [BM25, DENSE, POTION, MIXED]
    experiment = parse_experiment({**BASE, "retrievers": retrievers, "sweep": sweep})
    assert experiment.sweep is not None
    assert list(experiment.sweep.configurations) == names


@pytest.mark.parametrize(
    ("default", "names"),
    [
        # The defaults of k1 and b are those of the retriever that is varied.
        (BM25, ["words", "words[0.9, 0.75]", "words[1.2, 0.4]", "words[1.2, 0.75]"]),
        (
            {"name": "today", "kind": "bm25", "k1": 1.2},
            ["words", "words[0.9, 0.75]", "today", "words[1.2, 0.75]"],
        ),
    ],
)
def test_a_configuration_equal_to_the_default_is_the_default(default, names):
    retrievers = [BM25, default] if default is not BM25 else [BM25]
    axes = {"k1": [0.9, 1.2], "b": [0.4, 0.75]}
    sweep = {"default": default["name"], "of": "words", **axes}
    experiment = parse_experiment({**BASE, "retrievers": retrievers, "sweep": sweep})
    assert list(experiment.sweep.configurations) == names


def test_parts_of_a_fusion_take_one_value():
    sweep = {"default": "words", "of": "mixed", "chunk.size": [0, 300]}
    retrievers = [BM25, POTION, MIXED]
    experiment = parse_experiment({**BASE, "retrievers": retrievers, "sweep": sweep})
    mixed = next(one for one in experiment.retrievers if one.name == "mixed[300]")
    assert mixed.model_dump()["of"] == ("words[300]", "potion[300]")


def test_a_part_without_a_name_stays_in_every_configuration_of_a_sweep():
    part = {"kind": "bm25", "k1": 0.5}
    fusion = {"name": "both", "kind": "fusion", "of": ["words", part]}
    sweep = {"default": "words", "of": "both", "constant": [10, 60]}
    retrievers = [BM25, fusion]
    experiment = parse_experiment({**BASE, "retrievers": retrievers, "sweep": sweep})
    tables = {config.name: config.model_dump() for config in experiment.retrievers}
    for name in ("both", "both[10]"):
        words, nameless = tables[name]["of"]
        assert (words, nameless["k1"]) == ("words", 0.5)


def test_a_swept_key_below_a_text_is_refused_with_its_retriever():
    retrievers = [{**BM25, "floor": 0.1}, {**POTION, "chunk": "short"}]
    sweep = {"default": "words", "of": "potion", "chunk.size": [128, 256]}
    tables = {**BASE, "retrievers": retrievers, "sweep": sweep}
    refused = refusal(parse_experiment, tables)
    expected = "sweep.chunk.size: chunk of 'potion' is not a table (write it as one)"
    assert expected in str(refused)


def refused_sweeps(
    sweeps: Iterable[tuple[dict[str, Any], str]],
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the tables of sweeps with the messages that refuse them."""
    for sweep, message in sweeps:
        yield {"sweep": sweep}, message


REFUSED: list[tuple[dict[str, Any], str]] = [
    (variant({"v": {"kind": "openai"}}), "has another kind"),
    (
        variant({"v": {"dimension": 3}}),
        "retrievers[0].variants.v.encoder.dimension: unknown key 'dimension'",
    ),
    (variant({"not a name": {}}), "a name has letters"),
    (variant({"v": 3}), "variants"),
    (variant({"v": {"trust_remote_code": True}}, LOCAL), "variants.v: runs code"),
    (
        {"baseline": "dense", "sweep": {"default": "words", "of": "words", "k1": [1]}},
        "baseline 'dense' is not sweep.default",
    ),
    *refused_sweeps(
        [
            ({"of": "words", "k1": [1]}, "sweep.default: is missing"),
            (
                {"default": "word", "of": "words", "k1": [1]},
                "sweep.default 'word' is not a retriever; did you mean",
            ),
            (
                {"default": "words", "of": "word", "k1": [1]},
                "sweep.of: 'word' is not a retriever",
            ),
            (
                {"default": "words", "of": [], "k1": [1]},
                "sweep.of: names no retriever (name one: 'words'",
            ),
            (
                {"default": "words", "of": ["words", "words"], "k1": [1]},
                "sweep.of: names one twice (name each retriever once)",
            ),
            ({"default": "words", "of": "words"}, "sweep: has no axis"),
            (
                {"default": "dense", "of": "dense", "chunk": {"size": [1]}},
                'quote the whole key: "chunk.size" =',
            ),
            (
                {"default": "words", "of": "words", "k1": 1},
                "sweep.k1: 1 is not a list of values",
            ),
            ({"default": "words", "of": "words", "k1": []}, "sweep.k1: is empty"),
            (
                {"default": "words", "of": "words", "k1": [1, 1]},
                "sweep.k1: 1 occurs twice",
            ),
            (
                {"default": "words", "of": "words", "dense.chunk.size": [1]},
                "words does not use 'dense'",
            ),
            (
                {"default": "words", "of": "words", "k2": [1]},
                "sweep.k2: unknown key 'k2'",
            ),
            (
                {"default": "words", "of": "words", "kk1": [1, 2], "b": [0.2, 0.4]},
                "sweep.kk1: unknown key 'kk1' (did you mean 'k1'?)",
            ),
            (
                {"default": "words", "of": "words", "k1": [1, "x"], "b": [0.2, 0.4]},
                "sweep.k1: ",
            ),
            (
                {"default": "words", "of": "words", "name": ["a"]},
                "sweep.name: cannot be swept",
            ),
            (
                {"default": "dense", "of": "dense", "encoder.dimensions": [64]},
                "the default is its only configuration",
            ),
            (
                {
                    "default": "words",
                    "of": "words",
                    "k1": list(range(30)),
                    "b": [i / 20 for i in range(20)],
                },
                "sweep: makes 600 configurations; at most 500 are run",
            ),
        ]
    ),
]


@pytest.mark.parametrize(("tables", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_once(
    tables: dict[str, Any], message: str
) -> None:
    refused = refusal(
        parse_experiment,
        {**BASE, "retrievers": [BM25, DENSE, HYBRID], **tables},
        allow_code=False,
    )
    assert message in str(refused)
    assert len(refused.problems) == 1


SWEEP = """
[sweep]
default = "bm25"
of = ["hashing", "hybrid"]
"encoder.dimensions" = [32, 64]
"chunk.size" = [0, 20]
"hybrid.weights" = [[1, 1], [1, 2]]
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunPlan, Results]:
    """A sweep with its report, planned before anything was embedded."""
    folder = tmp_path_factory.mktemp("swept")
    path = small.experiment(folder, retrievers=small.RETRIEVERS + SWEEP, report=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return planned(path, results=folder), run(path, RunOptions(folder / "out"))


def test_a_sweep_runs_resumes_and_comes_out_again(
    tmp_path: Path, swept: tuple[RunPlan, Results], call: Call
) -> None:
    before, results = swept
    assert [row.texts for row in before.rows if row.stage == "embed-queries"] == [
        6,
        6,
    ]  # one for each model
    assert "hybrid[32, whole, 1-2]" in results.retrievers
    assert results.manifest.resolved.baseline == "bm25"
    costs = results.costs[results.costs["stage"] == "embed-documents"]
    assert costs["texts"].sum() - costs["cached"].sum() == before.total().texts - 12
    choice = read_or_evaluate(results).sweep
    assert choice is not None
    assert choice.configurations == 12
    assert choice.chosen in choice.alike
    # Chosen and measured on other queries.
    assert choice.expected is not None
    assert choice.expected <= choice.gain
    assert choice.gain <= 0
    assert choice.default in choice.alike
    others = len(choice.alike) - 2
    # All cost nothing: none is the cheapest.
    sentence = f"{others} other configurations may be as good as {choice.chosen}"
    sentence += " (the best besides bm25)."
    assert sentence in conclusion_sentences(read_or_evaluate(results))
    (row,) = results.tests[results.tests["family"] == "sweep"].to_dict("records")
    assert (row["a"], row["b"], row["p_value"]) == (
        choice.chosen,
        "bm25",
        choice.p_value,
    )
    assert reproduce(results.folder).differing_files == ()
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + SWEEP)
    output = call("run", path, "--results", tmp_path / "out", "--json", code=0).out
    printed = json.loads(output)["sweep"]
    assert (printed["chosen"], printed["configurations"]) == (choice.chosen, 12)
    assert (results.folder / "scores.csv").read_bytes() == (
        tmp_path / "out" / "small" / "scores.csv"
    ).read_bytes()


def test_a_choice_below_the_default_is_called_the_best_besides_it(
    swept: tuple[RunPlan, Results],
) -> None:
    choice = read_or_evaluate(swept[1]).sweep
    assert choice is not None
    above = replace(choice, alike=("a", "b"), chosen="b", cheapest="a", gain=0.01)
    below = replace(above, gain=-0.01)
    assert alike_sentence(above) == "a may be as good as b; a is the cheapest."
    assert alike_sentence(below) == (
        "a may be as good as b (the best besides bm25); a is the cheapest."
    )
    with_default = replace(below, alike=("bm25", "a", "b"))
    assert alike_sentence(with_default) == alike_sentence(below)
    assert not alike_sentence(replace(below, alike=("b", "bm25")))


def test_the_board_of_a_sweep_has_the_default_first_and_its_axes_as_columns(
    tmp_path: Path,
) -> None:
    retrievers = small.BM25 + (
        '[sweep]\ndefault = "bm25"\nof = "bm25"\nk1 = [0.5, 2.0]\nb = [0.0, 0.4]\n'
    )
    results = small.ran(tmp_path, retrievers=retrievers, report=True)
    screen = first_screen(build_view(results))
    first, *others = screen.lines
    assert screen.setting_names == ("k1", "b")
    assert (first.row.retriever, first.settings) == ("bm25", ("", ""))
    assert {(line.name, *line.settings) for line in others} == {
        ("bm25", k1, b) for k1 in ("0.5", "2") for b in ("0", "0.4")
    }
    means = [line.row.mean for line in others]
    assert means == sorted(means, reverse=True)


def test_the_default_in_the_grid_is_one_row_and_a_dashed_cell(tmp_path: Path) -> None:
    retrievers = small.BM25 + (
        '[sweep]\ndefault = "bm25"\nof = "bm25"\nk1 = [0.9, 2.0]\nb = [0.0, 0.4]\n'
    )
    results = small.ran(tmp_path, retrievers=retrievers, report=True)
    first, *others = first_screen(build_view(results)).lines
    assert (first.row.retriever, first.settings) == ("bm25", ("0.9", "0.4"))
    assert len(others) == 3
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert 'dashed" title="bm25"' in page
    assert "Dashed: the default." in page


def test_the_page_shows_the_grid_and_the_chosen_cell(
    swept: tuple[RunPlan, Results],
) -> None:
    _, results = swept
    choice, means = read_or_evaluate(results).sweep, read_or_evaluate(results).means
    assert choice is not None
    page, plain = (
        (results.folder / name).read_text(encoding="utf-8")
        for name in ("report.html", "report.md")
    )
    assert (
        'id="sweep"' in page
        and f"{choice.chosen} scores {difference_text(round(choice.gain, 4))[:1]}"
        in page
    )
    assert choice.chosen in plain.replace("\\", "")
    grid = page.partition(
        "nDCG@3 by <code>encoder.dimensions</code> and <code>chunk.size</code>"
    )[2].partition("</table>")[0]
    # Each cell shows its own configuration, and the chosen one is framed.
    cells = re.findall(
        r'<td class="n heat\d( framed)?(?: dashed)?" title="([^"]*)">([\d.]+)<', grid
    )
    assert len(cells) == 4
    assert [name for framed, name, _ in cells if framed] == [choice.chosen]
    assert {name: value for _, name, value in cells} == {
        name: f"{means[name]:.3f}" for _, name, _ in cells
    }
    listed = page.rpartition(">Configurations: ")[2].partition("</table>")[0]
    assert listed.count("<tr>") == 1 + 12 + 1  # a head, the grid, the default


@pytest.mark.parametrize(
    ("key", "option", "problem"),
    [
        ("variants", {"plain": {"query_prompt": "x"}}, "makes further retrievers"),
        ("derive", {"dimensions": [64]}, "makes further retrievers"),
        ("floor", 0.0, "has no effect on a part without a name"),
        ("conversation", {"text": "all"}, "has no effect on a part without a name"),
    ],
)
def test_a_part_without_a_name_lacks_some_keys(key, option, problem):
    part = {"encoder": {"kind": "hashing"}, key: option}
    fusion = {"name": "f", "kind": "fusion", "of": ["words", part]}
    words = {"name": "words", "kind": "bm25"}
    error = refusal(parse_experiment, BASE | {"retrievers": [words, fusion]})
    assert f"retrievers[1].of[1].{key}: {problem}" in str(error)


def test_a_pattern_that_is_not_of_names_is_told_as_it_is() -> None:
    tables = {**variant({}), "conversation": {"text": "foo"}}
    message = str(refusal(parse_experiment, tables))
    assert "conversation.text: 'foo': should match pattern" in message
    assert "letters" not in message
