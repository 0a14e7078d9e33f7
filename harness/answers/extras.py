"""Extras that scoring answers needs."""

from pathlib import Path

from harness.answers.text_tokens import require_sacrebleu
from harness.build.extras import all_extras_named, missing_extras
from harness.experiment import load


def require_extras(experiment: Path, *, code: bool) -> None:
    """Raise an error without sacrebleu.

    Args:
        experiment: the file; the error names all extras that it lacks.
        code: whether the experiment may name code.

    Raises:
        InputError: sacrebleu is not installed.
    """
    with all_extras_named(lambda: missing_extras(load(experiment, allow_code=code))):
        require_sacrebleu()
