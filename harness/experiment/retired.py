"""Words of experiments of before that are refused: each with what to use."""

from __future__ import annotations

from collections.abc import Mapping

RETIRED: Mapping[str, str] = {
    "qdrant-fusion": 'use kind = "fusion", whose rankings are the same; the constant 60 is the k = 61 of Qdrant',
}
"""Kind or key -> one sentence that says what to use."""
