"""Vectors from many machines: written as Parquet by Ray Data, taken over into the
cache, never embedded again.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

fsspec = pytest.importorskip("fsspec")
pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from harness import pipeline  # noqa: E402
from harness.running.embedding_tasks import embedding_tasks  # noqa: E402
from harness.running.options import RunOptions  # noqa: E402
from retrievers.cache import Cache  # noqa: E402
from retrievers.encoders.hashing import HashingEncoder  # noqa: E402
from retrievers.errors import InputError  # noqa: E402
from retrievers.files.parquet_vectors import (  # noqa: E402
    ImportedVectors,
    import_vectors,
    read_digests,
    vector_folder,
    vector_table,
    write_vector_manifest,
)
from retrievers.identity import text_keys  # noqa: E402
from retrievers.meter import single_call  # noqa: E402
from retrievers.ragged import TokenVectors  # noqa: E402
from retrievers.types import Embedded  # noqa: E402
from tests.support import small  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_cache")
RETRIEVER = (
    '[[retrievers]]\nname = "whole"\nencoder = { kind = "hashing", dimensions = 64 }\n'
)
TEXTS = [f"{name} # {name}\n\n{text}" for name, text in small.TEXTS.items()]
COUNTS = np.arange(2, dtype=np.int64)


def write(url: Path, fingerprint: str, role: str, table, form: str = "dense") -> Path:
    """One file of vectors, as `harness embed` leaves it; returns its folder."""
    folder = vector_folder(str(url), fingerprint, role)
    write_vector_manifest(folder, form)
    parquet.write_table(table, f"{folder.path}/{len(read_digests(folder))}.parquet")
    return Path(folder.path)


def two(vectors, names=(b"a" * 16, b"b" * 16)):
    return vector_table(["1", "2"], names, Embedded(vectors, COUNTS, COUNTS))


def test_a_run_reads_vectors_and_embeds_nothing(tmp_path):
    alone = pipeline.run(
        small.experiment(tmp_path, retrievers=RETRIEVER), RunOptions(tmp_path / "alone")
    )
    encoder = HashingEncoder(dimensions=64)
    url = tmp_path / "vectors"
    for role, texts in (
        ("document", TEXTS),
        ("query", [text for _, text, _ in small.QUERIES]),
    ):
        embedded = encoder.embed(texts, role, single_call())
        names = text_keys(encoder.fingerprint_for(role), role, texts)
        write(
            url,
            encoder.fingerprint_for(role),
            role,
            vector_table(texts, names, embedded),
        )
    os.environ["HARNESS_CACHE"] = str(tmp_path / "cold")
    more = f'[vectors]\nfrom = "{url.as_posix()}"\n'
    results = pipeline.run(
        small.experiment(tmp_path, retrievers=RETRIEVER, more=more, name="read"),
        RunOptions(tmp_path / "results"),
    )
    costs = results.costs.set_index("stage").loc["embed-documents"]
    assert costs["cached"] == costs["texts"] == len(TEXTS)
    ours, theirs = (
        results_of_run.folder / "rankings" / "whole.jsonl"
        for results_of_run in (results, alone)
    )
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("form", "vectors"),
    [
        ("dense", np.array([[1, 0.5], [0, 2]], dtype=np.float32)),
        (
            "multivector",
            TokenVectors.from_matrices(
                [np.ones((2, 3), dtype=np.float32), np.zeros((1, 3), dtype=np.float32)]
            ),
        ),
    ],
)
def test_every_form_of_vector_is_taken_over_once(tmp_path, form, vectors):
    write(tmp_path / "v", "m-1", "document", two(vectors), form)
    with Cache(tmp_path / "cache.sqlite") as cache:
        assert import_vectors(cache, str(tmp_path / "v")) == [
            ImportedVectors("m-1", "document", 2, 0)
        ]
        assert import_vectors(cache, str(tmp_path / "v")) == [
            ImportedVectors("m-1", "document", 0, 2)
        ]
        positions, held = cache.get([b"b" * 16, b"a" * 16], form)
        assert sorted(positions.tolist()) == [0, 1]
        held = held.take(np.argsort(positions))
        assert held.tokens.tolist() == [1, 0]
        ours, theirs = (
            [*vectors_of_run.rows()] if form == "multivector" else vectors_of_run
            for vectors_of_run in (held.vectors, vectors)
        )
        assert all(
            np.array_equal(line, other)
            for line, other in zip(ours, theirs[::-1], strict=True)
        )


def test_a_text_that_a_file_repeats_hides_no_other(tmp_path):
    first, second = b"a" * 16, b"b" * 16
    vectors = np.array([[1, 0], [1, 0], [0, 2]], dtype=np.float32)
    counts = np.zeros(3, dtype=np.int64)
    table = vector_table(
        ["1", "1", "2"], [first, first, second], Embedded(vectors, counts, counts)
    )
    write(tmp_path / "v", "m-1", "document", table)
    with Cache(tmp_path / "cache.sqlite") as cache:
        [imported] = import_vectors(cache, str(tmp_path / "v"))
        positions, cached = cache.get([second])
    assert imported == ImportedVectors("m-1", "document", rows=2, known=1)
    assert positions.tolist() == [0]
    assert cached.vectors.tolist() == [[0, 2]]


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("tokens", None, "has no column 'tokens'"),
        ("tokens", ["1", "2"], "column 'tokens' has the type string"),
        ("digest", ["a", "b"], "column 'digest' has the type string"),
        ("digest", [b"a" * 16, None], "has empty cells"),
        ("vector", [b"a", b"b"], "or some that are not dense"),
    ],
)
def test_a_file_of_other_columns_is_refused(tmp_path, column, cells, message):
    table = two(np.ones((2, 2), dtype=np.float32)).drop_columns([column])
    if cells:
        table = table.append_column(column, [cells])
    write(tmp_path / "v", "m-1", "document", table)
    with (
        Cache(tmp_path / "cache.sqlite") as cache,
        pytest.raises(InputError, match=message),
    ):
        import_vectors(cache, str(tmp_path / "v"))


@pytest.mark.parametrize(
    ("location", "manifest", "more", "message"),
    [
        (
            "v",
            {"fingerprint": "m-2", "role": "document", "form": "dense"},
            None,
            "names 'm-2' and 'document', its",
        ),
        ("v", None, [[1, 2, 3], [1, 2, 3]], "holds vectors of several widths"),
        ("v", None, [[1, 2], [np.nan, 2]], "holds a vector that is not finite"),
        (
            "v",
            {"fingerprint": "m-1", "role": "document"},
            None,
            "is no manifest of vectors",
        ),
        ("v", ["dense"], None, "is no manifest of vectors"),
        ("v", {}, None, "holds no vectors"),
        ("none", None, None, "cannot be reached"),
        ("nope://x", None, None, "cannot be opened"),
    ],
)
def test_what_cannot_be_right_is_refused(
    tmp_path, capsys, monkeypatch, location, manifest, more, message
):
    monkeypatch.chdir(tmp_path)
    folder = write(
        tmp_path / "v", "m-1", "document", two(np.ones((2, 2), dtype=np.float32))
    )
    if more is not None:
        table = two(np.array(more, dtype=np.float32), (b"c" * 16, b"d" * 16))
        parquet.write_table(table, folder / "9.parquet")
    if manifest is not None:
        (folder / "manifest.json").unlink()
    if manifest:
        (folder / "manifest.json").write_text(json.dumps(manifest))
    output = small.ends(capsys, 2, "cache", "import", location)
    assert (output.out, message in output.err, output.err.count("\n")) == (
        "",
        True,
        1,
    ), output.err


def test_vectors_of_other_encoders_are_refused(tmp_path):
    write(tmp_path / "v", "m-1", "document", two(np.ones((2, 2), dtype=np.float32)))
    more = f'[vectors]\nfrom = "{(tmp_path / "v").as_posix()}"\n'
    path = small.experiment(tmp_path, retrievers=RETRIEVER, more=more)
    with pytest.raises(InputError, match="no vectors of the encoders of this"):
        pipeline.run(path, RunOptions(tmp_path / "results"))


def test_a_manifest_at_the_root_of_a_bucket_is_no_traceback(tmp_path):
    with fsspec.open("memory://manifest.json", "w") as file:
        file.write("{}")
    with (
        Cache(tmp_path / "cache.sqlite") as cache,
        pytest.raises(InputError, match="is no manifest of vectors"),
    ):
        import_vectors(cache, "memory://")


@pytest.mark.parametrize(
    "options",
    [
        'encoder = { kind = "voyage-context", model = "m", base_url = "http://a" }',
        'encoder = { kind = "sentence-transformers", '
        'model = "sentence-transformers/all-MiniLM-L6-v2" }\n'
        "chunk = { size = 40, late = true }",
    ],
)
def test_passages_that_are_read_with_their_document_are_refused(tmp_path, options):
    """A run would not find their vectors: its keys have the documents."""
    table = f'[[retrievers]]\nname = "v"\n{options}\n'
    path = small.experiment(tmp_path, retrievers=table)
    with pytest.raises(InputError, match=r"^retriever 'v': reads each passage with"):
        embedding_tasks(path)


def test_a_file_that_a_killed_writer_left_is_passed_over(tmp_path, caplog):
    folder = write(
        tmp_path / "v", "m-1", "document", two(np.ones((2, 2), dtype=np.float32))
    )
    content = next(folder.glob("*.parquet")).read_bytes()
    (folder / "half.parquet").write_bytes(content[: len(content) // 2])
    assert read_digests(vector_folder(str(tmp_path / "v"), "m-1", "document")) == {
        b"a" * 16,
        b"b" * 16,
    }
    assert "half.parquet is not a whole file" in caplog.text


def on_cluster(path: Path, url: Path, *fault: str) -> subprocess.CompletedProcess[str]:
    project_path = str(Path(__file__).parents[3])
    quiet = {
        **os.environ,
        "RAY_DEDUP_LOGS": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": project_path,
    }
    command = [
        sys.executable,
        "-m",
        "tests.support.ray_cluster",
        str(path),
        str(url),
        *fault,
    ]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=project_path,
        env=quiet,
        check=False,
    )


ray = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("ray") is None, reason="the extra `ray` is not installed"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="Ray's test cluster is wanted"),
]


class TestRay:
    pytestmark = ray

    def test_a_killed_node_leaves_every_vector_and_a_failed_provider_is_one_message(
        self, tmp_path, monkeypatch
    ):
        path = small.experiment(tmp_path, retrievers=RETRIEVER)
        url = tmp_path / "vectors"
        done = on_cluster(path, url, "kill")
        assert done.returncode == 0, done.stderr[-3000:]
        name = HashingEncoder(dimensions=64).fingerprint
        for role, texts in (
            ("document", TEXTS),
            ("query", [text for _, text, _ in small.QUERIES]),
        ):
            assert read_digests(vector_folder(str(url), name, role)) == set(
                text_keys(name, role, texts)
            )
        files = sorted(url.rglob("*.parquet"))
        assert small.ended("embed", path, "--to", url) == 0
        assert sorted(url.rglob("*.parquet")) == files
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        block = (
            '[[retrievers]]\nname = "it"\nencoder = '
            '{{ kind = "openai", model = "m", base_url = "{}" }}\n'
        )
        done = on_cluster(
            small.experiment(
                tmp_path, retrievers=block.format("http://127.0.0.1:9/v1")
            ),
            url,
        )
        assert done.returncode == 3
        assert "embedding failed: " in done.stderr and "Traceback" not in done.stderr
