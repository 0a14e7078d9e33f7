"""Data sets read from Python."""

from pathlib import Path

from harness import dataset
from harness.dataset import Dataset, DatasetReference
from harness.notebook.argument_types import check_path
from harness.notebook.python_words import problems_without_options


def load_dataset(
    reference: DatasetReference | str | Path,
    *,
    drop_dangling: bool = False,
    sample_size: int = 0,
) -> Dataset:
    """Read and check a data set.

    Args:
        reference: a path, a name (`hf:…`, `irds:…`), or a `DatasetReference` with
            columns, files and the like.
        drop_dangling: whether labels of unknown documents or queries are left out and
            counted; else they are a problem.
        sample_size: how many documents `Dataset.sample` has, chosen by their ids.

    Raises:
        InputError: with every problem of its files.

    >>> dataset = load_dataset("datasets/survey-templates-en")
    >>> dataset.document_count, len(dataset.queries)
    (182, 13)
    """
    if not isinstance(reference, DatasetReference):
        check_path(reference, "reference", 'a path, or a name: "hf:…"')
    with problems_without_options():
        return dataset.load_dataset(
            reference, drop_dangling=drop_dangling, sample_size=sample_size
        )
