"""Extras that scoring answers needs."""

from pathlib import Path

from harness.answers.text_tokens import require_sacrebleu
from harness.build.extras import all_extras_named, missing_extras
from harness.experiment import load


def require_extras(experiment: Path, *, allow_code: bool) -> None:
    """Refuse to work without sacrebleu, which every score of answers needs.

    Args:
        experiment: the file; the error names all extras that it lacks.
        allow_code: whether the experiment may name Python code.

    Raises:
        InputError: sacrebleu is not installed.
    """
    with all_extras_named(
        lambda: missing_extras(load(experiment, allow_code=allow_code))
    ):
        require_sacrebleu()
