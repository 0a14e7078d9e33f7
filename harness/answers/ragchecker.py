"""The measures of RAGChecker.

Checked against `computation.py` of the project (amazon-science/RAGChecker, commit of
December 2024). There a measure with a zero divisor is 0, so an empty answer has perfect
hallucination; here it is undefined (None). So is one that an unknown verdict could
change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.measures.claims import Truth, any_true, both_true, not_true, true_share

ClaimRow = Sequence[Truth]
"""One claim: whether each passage entails it, passages in their order."""


@dataclass(frozen=True, slots=True)
class Entailments:
    """All verdicts on one answer: which text entails which claim."""

    right: Sequence[Truth]
    """For each claim of the response: whether the reference entails it."""
    covered: Sequence[Truth]
    """For each claim of the reference: whether the response entails it."""
    response_in: Sequence[ClaimRow]
    """For each claim of the response: whether each passage entails it."""
    reference_in: Sequence[ClaimRow]
    """For each claim of the reference: whether each passage entails it."""
    passages: int
    """Number of retrieved passages: the length of every row of the two tables."""

    @property
    def retrieved(self) -> list[Truth]:
        """For each claim of the reference: whether any passage entails it."""
        return [any_true(row) for row in self.reference_in]

    @property
    def faithful(self) -> list[Truth]:
        """For each claim of the response: whether any passage entails it."""
        return [any_true(row) for row in self.response_in]

    @property
    def relevant(self) -> list[Truth]:
        """For each passage: whether it entails any claim of the reference."""
        return list(map(self._is_relevant, range(self.passages)))

    def _is_relevant(self, passage: int) -> Truth:
        return any_true(row[passage] for row in self.reference_in)


def precision(entailments: Entailments) -> float | None:
    """Precision: the response's claims that the reference entails / all of them.

    Range 0 to 1; undefined for a response without a claim.
    """
    return true_share(entailments.right)


def recall(entailments: Entailments) -> float | None:
    """Recall: the reference's claims that the response entails / all of them.

    Range 0 to 1; undefined for a reference without a claim.
    """
    return true_share(entailments.covered)


def f1(entailments: Entailments) -> float | None:
    """F1: the harmonic mean of precision and recall of the query; 0 if both are 0.

    Range 0 to 1; undefined if one of the two is.
    """
    p = precision(entailments)
    r = recall(entailments)
    if p is None or r is None:
        return None
    return 2 * p * r / (p + r) if p + r else 0.0


def claim_recall(entailments: Entailments) -> float | None:
    """Claim recall: the reference's claims that any passage entails / all of them.

    The retriever's recall. Range 0 to 1; undefined for a reference without a claim; 0
    if nothing was retrieved.
    """
    return true_share(entailments.retrieved)


def context_precision(entailments: Entailments) -> float | None:
    """Context precision: passages that entail any claim of the reference / passages.

    Ranks do not count. Range 0 to 1; undefined without passages, or without claims of
    the reference.
    """
    return true_share(entailments.relevant) if entailments.reference_in else None


def context_utilization(entailments: Entailments) -> float | None:
    """Context utilisation: the share of the retrieved claims that the generator used.

    Claims of the reference both retrieved and in the response / those retrieved. Range
    0 to 1; undefined if no claim of the reference was retrieved.
    """
    retrieved = entailments.retrieved
    if None in retrieved:
        return None
    covered_of_retrieved = [
        is_covered
        for is_covered, is_retrieved in zip(entailments.covered, retrieved, strict=True)
        if is_retrieved
    ]
    return true_share(covered_of_retrieved)


def faithfulness(entailments: Entailments) -> float | None:
    """Faithfulness: the response's claims that any passage entails / all of them.

    Range 0 to 1; undefined for a response without a claim. With hallucination and
    self-knowledge it adds up to 1.
    """
    return true_share(entailments.faithful)


def hallucination(entailments: Entailments) -> float | None:
    """Hallucination: the response's claims that nothing entails / all of them.

    Neither a passage nor the reference entails them. Range 0 to 1, low is good;
    undefined for a response without a claim.
    """
    unfaithful = map(not_true, entailments.faithful)
    wrong = map(not_true, entailments.right)
    return true_share(list(map(both_true, unfaithful, wrong)))


def self_knowledge(entailments: Entailments) -> float | None:
    """Self-knowledge: the response's right claims that no passage entails / all claims.

    Range 0 to 1; undefined for a response without a claim. Neither high nor low is
    better.
    """
    unfaithful = map(not_true, entailments.faithful)
    return true_share(list(map(both_true, unfaithful, entailments.right)))


def noise_sensitivity_in_relevant(entailments: Entailments) -> float | None:
    """Noise sensitivity: wrong claims that a relevant passage entails / all claims.

    A passage is relevant if it entails any claim of the reference. Range 0 to 1, low is
    good; undefined for a response or a reference without a claim.
    """
    return true_share(_noise(entailments)) if entailments.reference_in else None


def noise_sensitivity_in_irrelevant(entailments: Entailments) -> float | None:
    """Noise sensitivity: wrong claims that only irrelevant passages entail / all.

    Range 0 to 1, low is good; undefined for a response or a reference without a claim.
    With the noise in relevant passages and hallucination it adds up to 1 - precision.
    """
    if not entailments.reference_in:
        return None
    wrong = map(not_true, entailments.right)
    wrong_and_faithful = map(both_true, wrong, entailments.faithful)
    not_in_relevant = map(not_true, _noise(entailments))
    return true_share(list(map(both_true, wrong_and_faithful, not_in_relevant)))


def _noise(entailments: Entailments) -> list[Truth]:
    """For each claim of the response: whether it is noise of a relevant passage.

    It is wrong, and a relevant passage entails it.
    """
    relevant = entailments.relevant
    noise: list[Truth] = []
    for right, row in zip(entailments.right, entailments.response_in, strict=True):
        in_relevant = any_true(
            both_true(is_entailed, is_relevant)
            for is_entailed, is_relevant in zip(row, relevant, strict=True)
        )
        noise.append(both_true(not_true(right), in_relevant))
    return noise
