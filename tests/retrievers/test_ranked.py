"""Rankings: their order, their fusion, and TREC files of them."""

from __future__ import annotations

import gzip
import math
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from qdrant_client import models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion
from qdrant_client.hybrid.fusion import reciprocal_rank_fusion as of_the_client

from harness.dataset.readers import trec
from harness.experiment import parse_experiment
from harness.measures import parse_measure_list
from harness.scoring.conventions import RunConventions
from harness.scoring.trec_runs import score_trec_runs
from retrievers.bm25 import BM25
from retrievers.dense import Dense
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import InputError
from retrievers.files import trec_files, trec_lines
from retrievers.files.trec_columns import parse_columns
from retrievers.files.trec_files import read_qrels, write_trec_qrels
from retrievers.files.trec_lines import BLOCK_BYTES, MAX_LISTED_PROBLEMS
from retrievers.filtered import Filtered
from retrievers.fused import Fused
from retrievers.ids import to_nfc
from retrievers.meter import Meter
from retrievers.reranked import Reranked
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.saved_run import SavedRun
from retrievers.types import SCORE_RESOLUTION, Document, Query, ranked, round_scores
from tests.support.small import refusal

SCORES = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from(
        [0.0, 0.5, 0.5 + 1e-9, 1.0, -1.0, 5e-324, 1e300, 1.7e9, 1.7e9 - 10]
    ),
    st.floats(-1e-9, 1e-9),
)
HITS = st.dictionaries(st.text(min_size=1, max_size=3), SCORES, max_size=12)


@given(HITS, st.randoms())
def test_hits_are_ordered_by_score_then_descending_id_in_any_input_order(hits, random):
    ranking = ranked(list(hits), list(hits.values()))
    pairs = list(zip(ranking.scores.tolist(), ranking.doc_ids, strict=True))
    assert (
        pairs == sorted(pairs, reverse=True)
        and {id_: score for score, id_ in pairs} == hits
    )
    shuffled = list(hits.items())
    random.shuffle(shuffled)
    assert ranked([i for i, _ in shuffled], [s for _, s in shuffled]) == ranking


@given(st.lists(SCORES, max_size=12))
def test_scores_are_rounded_once_by_no_more_than_the_resolution(scores):
    once = round_scores(scores)
    most = np.abs(scores).max(initial=0.0)
    assert round_scores(once).tolist() == once.tolist()
    assert (
        np.abs(once - np.array(scores)) <= 0.5000001 * SCORE_RESOLUTION * most + 5e-324
    ).all()


@pytest.mark.parametrize(
    ("first_score", "order"), [(0.8000001, ("b", "a")), (0.800001, ("a", "b"))]
)
def test_float_noise_is_rounded_in_our_scores(first_score, order):
    assert ranked(["a", "b"], round_scores([first_score, 0.8])).doc_ids == order


def test_float_noise_is_kept_in_the_scores_of_others():
    assert ranked(["a", "b"], [0.8000001, 0.8]).doc_ids == ("a", "b")


@pytest.mark.parametrize(
    ("doc_ids", "scores", "message"),
    [(["a"], [float("nan")], "not finite"), (["a", "b"], [1.0], "2 ids for 1 scores")],
)
def test_scores_that_are_no_scores_of_the_ids_are_refused(doc_ids, scores, message):
    with pytest.raises(ValueError, match=message):
        ranked(doc_ids, scores)


def test_nobody_changes_the_scores_of_a_ranking():
    assert not ranked(["a"], [1.0]).scores.flags.writeable


@given(st.lists(HITS.filter(bool), min_size=1, max_size=4))
def test_a_saved_run_is_ordered_as_score_double_orders_it(queries):
    with TemporaryDirectory() as folder:
        path, qrels = Path(folder) / "theirs.trec", Path(folder) / "qrels.trec"
        ids = [
            {f"d{n}": score for n, score in enumerate(query_scores.values())}
            for query_scores in queries
        ]
        lines: list[str] = []
        for n, query_scores in enumerate(ids):
            lines += [
                f"q{n} Q0 {doc} 1 {score!r} t\n" for doc, score in query_scores.items()
            ]
        path.write_text("".join(lines))
        retriever = SavedRun(path=str(path))
        retriever.index(
            [Document(doc, "", "x") for query_scores in ids for doc in query_scores],
            Meter(),
        )
        searched = [Query(f"q{n}", "x") for n in range(len(ids))]
        ours = [
            list(ranking.doc_ids)
            for ranking in retriever.search(searched, 100, Meter())
        ]
        qrels.write_text("".join(f"{query.id} 0 d0 1\n" for query in searched))
        scored = score_trec_runs(
            qrels,
            [path],
            parse_measure_list(["RR"]),
            conventions=RunConventions(precision="double"),
        )
        assert ours == [scored.rankings["theirs"]()[query.id] for query in searched]


def fuse(rankings, depth, method="rrf", **options):
    return Fused((), method, **options).fuse(rankings, depth)


some_rankings = st.lists(
    st.dictionaries(st.integers(0, 30), st.floats(-50, 50), max_size=12),
    min_size=1,
    max_size=4,
).map(
    lambda queries: [
        ranked(list(map(str, scores)), list(scores.values())) for scores in queries
    ]
)


def fused_by_the_client(fusion, rankings):
    """The scores of a fusion of Qdrant's client, by document."""
    points = [
        [
            models.ScoredPoint(id=int(id_), version=0, score=score)
            for id_, score in ranking
        ]
        for ranking in rankings
    ]
    return {str(point.id): point.score for point in fusion(points, limit=999)}


@given(some_rankings, st.integers(1, 100))
def test_ranks_are_fused_as_in_the_client_where_k_is_the_constant_and_one_more(
    rankings, constant
):
    fusion = partial(of_the_client, ranking_constant_k=constant + 1)
    scores = fused_by_the_client(fusion, rankings)
    ours = dict(fuse(rankings, 999, constant=constant))
    assert ours == pytest.approx(scores, rel=1e-5, abs=3e-6)


@given(some_rankings)
def test_the_clients_own_constant_is_1_of_ours(rankings):
    scores = fused_by_the_client(of_the_client, rankings)
    ours = dict(fuse(rankings, 999, constant=1))
    assert ours == pytest.approx(scores, rel=1e-5, abs=3e-6)


@example([ranked(["0", "1"], [0.0, 3.8e-171])])  # whose variance is 0 in 64 bits
@given(some_rankings)
def test_scores_are_fused_by_their_distribution_as_in_the_client(rankings):
    scores = fused_by_the_client(distribution_based_score_fusion, rankings)
    ours = dict(fuse(rankings, 999, "dbsf"))
    assert ours == pytest.approx(scores, rel=1e-5, abs=1e-5)


# Scores of AutoRAG's own test, tests/autorag/nodes/retrieval/test_hybrid_base.py.
LISTS = [
    ranked([f"id-{i}" for i in (1, 2, 3, 4, 5)], [5, 3, 1, 0.4, 0.2]),
    ranked([f"id-{i}" for i in (1, 4, 3, 5, 2)], [6, 2, 1, 0.5, 0.1]),
]


@pytest.mark.parametrize(
    ("minimum", "expected"),
    # AutoRAG 22b23d44, hybrid_cc.py: fuse_per_query(…, weight=0.3, top_k=5),
    # "mm" and "tmm" (minima -1 and 0).
    [
        (
            (),
            {
                "id-1": 1.0,
                "id-4": 0.23792373,
                "id-2": 0.175,
                "id-3": 0.15677966,
                "id-5": 0.04745763,
            },
        ),
        (
            (-1, 0),
            {
                "id-1": 1.0,
                "id-4": 0.30333333,
                "id-3": 0.21666667,
                "id-2": 0.21166667,
                "id-5": 0.11833333,
            },
        ),
    ],
)
def test_convex_combination_is_that_of_autorag(minimum, expected):
    ours = fuse(LISTS, 5, "convex", weights=(3, 7), minimum=minimum)
    assert list(ours.doc_ids) == list(expected)
    assert dict(ours) == pytest.approx(expected, abs=1e-6)


TWO_HITS = ranked(["y", "z"], [9, 8])


def test_a_ranking_of_weight_0_adds_its_documents_and_no_score():
    fused = fuse([ranked(["x", "y"], [1, 1]), TWO_HITS], 3, weights=(0, 1))
    expected = {"y": 1 / 61, "z": 1 / 62, "x": 0}  # 60 and the rank
    assert dict(fused) == pytest.approx(expected, abs=1e-6)


def test_scores_alike_are_the_best_of_their_ranking():
    fused = fuse([ranked(["x", "y"], [1, 1]), TWO_HITS], 3, "convex")
    assert dict(fused) == {"y": 1.0, "x": 0.5, "z": 0.0}


@pytest.mark.parametrize(
    ("other", "minimum", "scores"),
    [
        (ranked([], []), (0, 8), {"y": 0.5, "z": 0.0}),
        (ranked(["x"], [2]), (2, 8), {"y": 0.5, "x": 0.0, "z": 0.0}),
    ],
    ids=["no hit", "a hit at its minimum"],
)
def test_a_ranking_with_nothing_above_its_minimum_adds_nothing(other, minimum, scores):
    assert dict(fuse([other, TWO_HITS], 3, "convex", minimum=minimum)) == scores


@pytest.mark.parametrize(("minimum", "points"), [(0, 1), (2, 0)])
def test_equal_hits_add_1_above_the_minimum_and_0_at_it(minimum, points):
    hits = ranked(["x", "y"], [2, 2])
    fused = fuse([hits], 2, "convex", minimum=(minimum,))
    assert dict(fused) == {"x": points, "y": points}


@pytest.mark.parametrize("minimum", [6, 8])
def test_a_minimum_that_no_hit_is_above_is_refused(minimum):
    hits = ranked(["x", "y"], [6, 5])
    message = (
        rf"^minimum\[1\]: is {minimum}, and no hit of a query scores more \(5 to 6\) "
        r"\(give the lowest score that this retriever of `of` can have"
    )
    with pytest.raises(InputError, match=message):
        fuse([hits, hits], 2, "convex", minimum=(0, minimum))


@pytest.mark.parametrize("minimum", [0, 5.5])
def test_a_hit_below_the_minimum_keeps_its_place(minimum):
    hits = ranked(["x", "y"], [6, 5])
    assert fuse([hits], 2, "convex", minimum=(minimum,)).doc_ids == ("x", "y")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"weights": [1]}, "weights: has 1 numbers for 2 retrievers"),
        ({"weights": [0, 0]}, "weights: are all 0"),
        ({"minimum": [0, -1]}, "minimum: has no effect on rrf"),
        ({"method": "convex", "weights": [-1, 1]}, r"weights\[0\]: -1"),
    ],
)
def test_weights_that_do_not_fit_are_refused(keys, message):
    blocks = [
        *({"name": name, "kind": "bm25"} for name in "ab"),
        {"name": "h", "kind": "fusion", "of": ["a", "b"], **keys},
    ]
    with pytest.raises(InputError, match=message):
        parse_experiment(
            {
                "name": "x",
                "dataset": "d",
                "primary": "RR",
                "measures": ["RR"],
                "retrievers": blocks,
            }
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"weights": (1,)},
            r"^weights: has 1 numbers for 2 retrievers \(give one for each of `of`\)$",
        ),
        (
            {"method": "convex", "minimum": (0, -1, 0)},
            "^minimum: has 3 numbers for 2 retrievers",
        ),
        ({"weights": (0, 0)}, "^weights: are all 0"),
        ({"minimum": (0, -1)}, "^minimum: has no effect on rrf"),
        (
            {"method": "convex", "weights": (1, -1)},
            r"^weights: -1 is not allowed \(give 0 or more\)$",
        ),
        ({"weights": (math.nan, 1)}, "^weights: nan is not"),
        ({"weights": ("a", 1)}, "^weights: 'a' is not"),
        ({"weights": (10**400, 1)}, "^weights: 10+ is not allowed"),
        ({"weights": 5}, r"^weights: 5 is not a list \(give one number for each"),
        ({"method": "convex", "minimum": None}, "^minimum: None is not a list"),
        ({"constant": -1}, r"^constant: -1 is not allowed \(give more than 0\)$"),
        ({"method": "convex", "minimum": (0, math.inf)}, "^minimum: inf is not"),
        ({"method": "rff"}, r"^method: 'rff' .* \(did you mean 'rrf'\?\)$"),
    ],
)
def test_a_fusion_made_in_python_refuses_what_does_not_fit_its_parts(options, message):
    with pytest.raises(InputError, match=message):
        Fused([BM25(), BM25(b=0.5)], **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fused(BM25()), "^of: BM25.* is not a list"),
        (lambda: Fused(["bm25"]), "^of: 'bm25' is not a retriever"),
        (lambda: Filtered("bm25", {}), "^retriever: 'bm25' is not a retriever"),
        (lambda: Reranked(None, "a/b"), "^retriever: None is not a retriever"),
        (
            lambda: Reranked(BM25(), HashingEncoder()).reranker,
            "^kind: unknown reranker 'hashing'",
        ),
        (lambda: Dense(BM25()).encoder, "^kind: unknown encoder 'bm25'"),
        (
            lambda: Dense(HttpReranker("tei", base_url="http://a")).encoder,
            "^kind: unknown encoder 'http'",
        ),
    ],
)
def test_a_part_of_another_kind_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_fusion_of_given_rankings_refuses_weights_without_a_sum():
    with pytest.raises(InputError, match=r"^weights: are all 0"):
        Fused((), "convex", weights=(0, 0))


@pytest.mark.parametrize("option", ["weights", "minimum"])
def test_a_fusion_of_given_rankings_refuses_numbers_for_others(option):
    rankings = [ranked(["a"], [1]), ranked(["b"], [1])]
    with pytest.raises(InputError, match=f"^{option}: has 1 numbers for 2 retrievers"):
        Fused((), "convex", **{option: (1,)}).fuse(rankings, 5)


ODD = " %\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2003\u2028\u2029\u3000"
ids = st.text(
    st.one_of(st.sampled_from(ODD), st.characters(codec="utf-8")), min_size=1
).map(to_nfc)
scores = st.one_of(
    st.floats(-1e30, 1e30, allow_nan=False),
    st.sampled_from([0.0, 0.5, 0.5 + 1e-12, 1e-50, -1e-50, 1 / 3]),
)
same_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def streamed(path):
    return [
        (query, dict(zip(ids, hits.tolist(), strict=True)))
        for query, ids, hits in trec_files.stream_run(path)
    ]


READERS = {"qrels": (read_qrels,), "run": (trec_files.read_run, streamed)}


@pytest.fixture
def write(tmp_path):
    """Writes a file, and returns its path."""

    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@same_folder
@example({"{": {"\x80": 0}})
@example({"\ufeffq": {"\ufeffd": 1}})
@given(
    st.dictionaries(
        ids,
        st.dictionaries(ids, st.integers(-(2**31) + 1, 2**31 - 1), min_size=1),
        min_size=1,
    )
)
def test_written_judgments_are_read_unchanged(tmp_path, judgments):
    write_trec_qrels(tmp_path / "qrels", judgments)
    assert read_qrels(tmp_path / "qrels") == judgments


@same_folder
@example({"q": {"a": 1e300, "b": 1e39, "c": -1e39}})
@example({"q": {"a": 0.0, "b": -1e39, "c": -2e39, "d": -3e39}})
@example({"\ufeffq": {"\ufeffd": 1.0}})
@given(st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1))
def test_written_rankings_are_read_in_their_order(tmp_path, run):
    """Scores fall strictly, also as 32-bit floats: no reader breaks ties."""
    rankings = {q: ranked(list(hits), list(hits.values())) for q, hits in run.items()}
    trec_files.write_trec_run(tmp_path / "run", rankings, tag="x")
    back = trec_files.read_run(tmp_path / "run")
    assert list(back) == list(rankings)
    for query_id, hits in back.items():
        assert tuple(hits) == rankings[query_id].doc_ids
        doubles = np.array(list(hits.values()))
        singles = doubles.astype(np.float32)
        assert np.isfinite(singles).all()
        assert (singles[1:] < singles[:-1]).all()
        assert (np.diff(doubles) < 0).all()
    assert streamed(tmp_path / "run") == list(back.items())


def test_falling_scores_are_written_in_full(tmp_path):
    trec_files.write_trec_run(
        tmp_path / "run",
        {"q 1": ranked(["a", "b%", "c"], [0.1, 0.1, 0.05])},
        tag="tag",
    )
    lines = (tmp_path / "run").read_bytes().decode().split("\n")
    assert lines == [
        "q%201 Q0 b%25 1 0.1 tag",
        "q%201 Q0 a 2 0.09999999403953552 tag",
        "q%201 Q0 c 3 0.05 tag",
        "",
    ]


def test_a_stream_has_each_group_of_lines_and_a_file_each_query(write):
    path = write("p Q0 a 1 3 t\np Q0 b 2 2 t\nq Q0 a 1 1 t\np Q0 c 3 1 t\n")
    assert streamed(path) == [
        ("p", {"a": 3.0, "b": 2.0}),
        ("q", {"a": 1.0}),
        ("p", {"c": 1.0}),
    ]
    assert trec_files.read_run(path) == {
        "p": {"a": 3.0, "b": 2.0, "c": 1.0},
        "q": {"a": 1.0},
    }


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        (
            "qrels",
            "q%41 0 a%E9 1\nq 0 b%20c 0\n",
            {"q%41": {"a%E9": 1}, "q": {"b c": 0}},
        ),  # that only look encoded
        *(
            (
                "qrels",
                "\ufeff"
                + end.join(
                    [
                        gap.join(["q\u2028", "0", "d\u3000\xa0", "1"]),
                        "",
                        "   ",
                        gap.join(["q", "0", "d", "2"]),
                    ]
                ),
                {"q\u2028": {"d\u3000\xa0": 1}, "q": {"d": 2}},
            )
            for end in ("\n", "\r\n")
            for gap in (" ", "\t", "  \t ")
        ),
        (
            "run",
            "q Q0 d 1 1e-3 tag more junk at the end\nq Q0 e 2 -2 tag\n",
            {"q": {"d": 1e-3, "e": -2.0}},
        ),
        (
            "run",
            gzip.compress(b"q Q0 d 1 0.5 t\n", mtime=0),
            {"q": {"d": 0.5}},
        ),  # whatever their name
        ("qrels.gz", "q 0 d 1\n", {"q": {"d": 1}}),
    ],
)
def test_files_are_read_as_by_trec_eval(write, name, raw, expected):
    assert READERS[name.partition(".")[0]][0](write(raw, name)) == expected


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("qrels", "q 0 d", "3 fields instead of 4 (query iteration document grade)"),
        ("qrels", "q 0 d 1 2", "5 fields instead of 4"),
        *(
            ("qrels", f"q 0 d {grade}", f"'{grade}' is not a grade")
            for grade in ("1.0", "one", "1_0", "2147483648")
        ),
        *(("qrels", f"q 0 d {'9' * digits}", "'9999") for digits in (400, 5000)),
        ("qrels", "q 0 a 2", "document 'a' is judged twice for query 'q'"),
        ("qrels", b"\xff 0 d 1", "an id is not UTF-8"),
        (
            "run",
            "q Q0 d 1 0.5",
            "5 fields instead of 6 (query Q0 document rank score tag)",
        ),
        ("run", "q", "1 fields instead of 6"),
        ("run", f"q Q0 d 1 {'9' * 400} t", "'9999"),
        *(
            ("run", f"q Q0 d 1 {score} t", f"'{score}' is not a score")
            for score in ("high", "nan", "-inf", "1_000")
        ),
        ("run", "q Q0 a 2 0.4 t", "document 'a' is ranked twice for query 'q'"),
        ("run", b"q Q0 \xff 1 0.5 t", "an id is not UTF-8"),
    ],
)
def test_malformed_lines_are_reported_with_their_numbers(write, kind, line, message):
    first = {
        "qrels": b"q 0 a 1\nq 0 z 1\n",
        "run": b"q Q0 a 1 0.5 t\nq Q0 z 2 0.4 t\n",
    }[kind]
    path = write(first + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    start = f"{path}:3: {message}"
    refused = [str(refusal(reader, path)) for reader in READERS[kind]]
    assert [text for text in refused if not text.startswith(start)] == []


def test_many_problems_are_counted(write):
    error = refusal(trec_files.read_run, write("bad\n" * 1000))
    assert len(error.problems) == MAX_LISTED_PROBLEMS + 1
    assert "980 more" in str(error)


READING = pytest.mark.parametrize("reader", [read_qrels, trec_files.read_run])


@READING
@pytest.mark.parametrize("name", ["none", "", "cut.gz"])
def test_a_file_that_cannot_be_read_is_one_message(tmp_path, write, reader, name):
    """None is there, a folder is there, and one is there in part."""
    write(gzip.compress(b"q 0 d 1\n" * 100)[:-12], "cut.gz")
    assert "cannot be read" in str(refusal(reader, tmp_path / name))


@READING
def test_a_file_without_a_line_is_refused(write, reader):
    assert "there is no line" in str(refusal(reader, write("\n\n")))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    path = tmp_path_factory.mktemp("bomb") / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"q1 0 d1 1\n" + b"x" * (50 << 20))
    return path


@READING
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(bomb, reader):
    message = "bomb.gz:2: is longer than 1,048,576 bytes"
    assert message in str(refusal(reader, bomb))


lines = st.lists(
    st.sampled_from(
        [
            "q1 0 d1 1",
            "q1 0 d2 0",
            "q2 0 d1 3",
            "q2\t0  d%20x 1",
            "q3 0 dé 1",
            "q3 0 d\x1c 1",
            "q1 0 d1 1",
            "",
            "q4 0 d 1_0",
            "q3 0 d\0 1",
            "q3 0 e 1\0",
            "q%20 0 d%2 1 ",
            "q4 0 d",
            "q5 0 d 9999999999",
            "q5 0 d_1 -1",
            "q6 Q0 d1 1 0.5 t",
            "q6 Q0 d2 2 nan t",
            "q6 Q0 d3 3 0.25 a tag",
        ]
    ),
    max_size=12,
)


def outcome(reader, path):
    try:
        return reader(path)
    except InputError as error:
        return str(error)


@settings(max_examples=150, derandomize=True, database=None)
@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 40))
def test_the_size_of_blocks_does_not_change_what_is_read(
    tmp_path_factory, lines, end, ended, size
):
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes((end.join(lines) + end * ended).encode())
    fast, block = parse_columns, BLOCK_BYTES
    outcomes = []
    try:
        for columns, length in ((fast, size), (fast, block), (lambda *_: None, block)):
            trec_lines.BLOCK_BYTES = length
            trec_lines.parse_columns = columns
            trec.parse_columns = columns
            outcomes.append(
                [outcome(reader, path) for reader in (read_qrels, trec_files.read_run)]
            )
    finally:
        trec_lines.BLOCK_BYTES = block
        trec_lines.parse_columns = fast
        trec.parse_columns = fast
    assert outcomes[0] == outcomes[1] == outcomes[2]
