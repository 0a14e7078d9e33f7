"""Files of vectors for tests."""

from retrievers.shard_file import ShardWriter


def write_vectors(storage, fingerprint, role, names, embedded):
    """Writes the vectors of some texts as one file, as a shard does; returns its path."""
    with ShardWriter(storage, fingerprint, role) as writer:
        writer.add(names, embedded)
    return writer.paths[0]
