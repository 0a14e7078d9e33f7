"""Archives and compressed files: read where they lie, within bounds, and never written anywhere."""

import gzip
import tarfile
import zipfile
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load, reference_of
from harness.dataset.files import File, listing
from retrievers.errors import InputError
from tests.support import layouts


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in members.items():
            packed.writestr(name, raw)
    return path


@pytest.mark.parametrize("name", ["../out.jsonl", "/etc/out.jsonl", "a/../../out.jsonl", "C:/out.jsonl", "..\\out"])
def test_names_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    path = archive(tmp_path / "set.zip", {"corpus.jsonl": b"", name: b"x"})
    with pytest.raises(InputError, match="leads out of the archive"):
        load(reference_of(path))


def test_a_name_that_is_not_the_utf_8_it_is_said_to_be(tmp_path):
    path = archive(tmp_path / "set.zip", {"ä.md": b"# A", "queries.json": b"[]"})
    path.write_bytes(path.read_bytes().replace("ä.md".encode(), b"\xff\xfe.md"))
    with pytest.raises(InputError, match=r"set.zip: is not a zip archive that can be read: .utf-8. codec"):
        load(reference_of(path))


LOCAL, ENTRY = b"PK\x03\x04", b"PK\x01\x02"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        # The version needed to extract: APPNOTE.TXT, 4.4.3.
        ([(ENTRY, 6, b"\x63")], r"set.zip: is not a zip archive that can be read: zip file version 9.9"),
        # Encrypted: 4.4.4.
        ([(LOCAL, 6, b"\x01"), (ENTRY, 8, b"\x01")], r"a.md: cannot be read: .*password required"),
    ],
)
def test_an_archive_with_a_header_of_another_kind_is_refused(tmp_path, changes, told):
    path = archive(tmp_path / "set.zip", {"a.md": b"# A", "queries.json": b"[]"})
    raw = bytearray(path.read_bytes())
    for header, offset, value in changes:
        at = raw.find(header) + offset
        raw[at : at + len(value)] = value
    path.write_bytes(raw)
    with pytest.raises(InputError, match=told):
        load(reference_of(path))


def test_two_members_of_one_name_are_not_one_document(tmp_path):
    path = archive(tmp_path / "set.zip", {"a.md": b"# A", "queries.json": b"[]"})
    with zipfile.ZipFile(path, "a") as packed, pytest.warns(UserWarning, match="Duplicate name"):
        packed.writestr("a.md", b"# Another")
    with pytest.raises(InputError, match=r"set.zip/a.md: a.md is there as well .keep one of them"):
        load(reference_of(path))


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_beside_its_compressed_twin_is_refused_where_it_is_read(tmp_path, packed):
    folder = layouts.beir(tmp_path / "data")
    (folder / "notes.bin").write_text("read by nobody")
    (folder / "notes.bin.gz").write_text("read by nobody")
    count = load(reference_of(folder)).count
    assert count
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as twin:
        twin.write('{"_id": "only", "text": "here"}\n')
    if packed:
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        folder = archive(tmp_path / "set.zip", files)
    with pytest.raises(InputError, match=r"corpus.jsonl: corpus.jsonl.gz is there as well .keep one of them"):
        load(reference_of(folder))


@pytest.mark.parametrize(
    ("suffix", "raw"), [("gz", b"\x1f\x8b\x08cut"), ("zst", b"nothing"), ("bz2", b"BZh9cut"), ("xz", b"\xfd7zXZcut")]
)
def test_damaged_compression_is_named(tmp_path, suffix, raw):
    folder = layouts.beir(tmp_path / "data")
    (folder / "corpus.jsonl").unlink()
    (folder / f"corpus.jsonl.{suffix}").write_bytes(raw)
    with pytest.raises(InputError, match=rf"corpus.jsonl.{suffix}: (is damaged|cannot be read)"):
        load(reference_of(folder))


@pytest.mark.parametrize(
    ("suffix", "form"),
    [(".tar", None), (".tar.gz", "beir"), (".tgz", "markdown"), (".tar.bz2", None), (".tar.xz", None),
     (".tar.zst", None), (".7z", None)],
)  # fmt: skip
def test_archives_of_other_kinds_are_refused_with_what_to_do(tmp_path, suffix, form):
    """A tar archive is not read: it has no list of its members, and each pass would unpack all of it."""
    path = tmp_path / f"scifact{suffix}"
    mode = {".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}.get(suffix, "w")
    with tarfile.open(path, mode) as packed:
        packed.add(layouts.beir(tmp_path / "data"), "scifact")
    with pytest.raises(InputError, match=r"not read: only zip is .unpack it and name the folder, or pack"):
        load(DatasetReference(path, format=form))


def test_members_are_listed_without_the_folder_around_them_and_their_compression(tmp_path):
    path = archive(tmp_path / "set.zip", {"top/a.jsonl.gz": gzip.compress(b"{}"), "top/b/c.txt": b"x"})
    found = listing(path)
    assert list(found) == ["a.jsonl", "b/c.txt"]
    assert found["a.jsonl"].read() == b"{}"
    assert File(tmp_path / "x.JSONL.gz").suffix == ".jsonl"
