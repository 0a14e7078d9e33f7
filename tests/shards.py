"""Files of vectors for tests."""

from contextlib import closing

from retrievers.shard_file import FileWriter
from retrievers.vector_shards import put_file


def write_vectors(storage, fingerprint, role, names, embedded):
    """Writes the vectors of some texts as one file, as a shard does; returns its path."""
    with closing(FileWriter(fingerprint, role)) as writer:
        writer.add(names, embedded)
        return put_file(storage, fingerprint, role, writer)
