"""A repeated run as text."""

from harness.console.output import print_json
from harness.reproduce import (
    COMPARED_HITS,
    MEAN_TOLERANCE,
    Reproduction,
    version_changes_text,
)


def reproduction_sentence(reproduction: Reproduction) -> str:
    """Return how a repeated run differs from the first one."""
    if not reproduction.differing_files:
        return "reproduced: rankings, scores and comparisons are the same to the byte"
    sentence = (
        f"reproduced: means within {MEAN_TOLERANCE:g} (largest difference "
        f"{reproduction.largest_difference:.2g}); not the same to the byte: "
        f"{', '.join(reproduction.differing_files)}"
    )
    for retriever, share in reproduction.approximate.items():
        sentence += (
            f"; {retriever} searches an approximate index, which no two builds make "
            f"alike: {100 * share:.1f} % of its first {COMPARED_HITS} hits are there "
            "again"
        )
    return sentence + version_changes_text(reproduction.versions)


def print_reproduction(reproduction: Reproduction) -> None:
    """Print a repeated run as one JSON object."""
    print_json(
        differing=reproduction.differing_files,
        largest=reproduction.largest_difference,
        versions={change.package: str(change) for change in reproduction.versions},
        approximate=reproduction.approximate,
    )
