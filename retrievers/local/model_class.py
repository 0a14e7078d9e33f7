"""What a local model was trained as."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from retrievers.local.model_files import (
    explain_damage,
    read_first_module,
    read_json_file,
    read_model_settings,
)

ModelClass = Literal[
    "CrossEncoder", "MultiVectorEncoder", "SentenceTransformer", "SparseEncoder"
]
"""Classes of sentence-transformers: a MultiVectorEncoder is late interaction (ColBERT),
a SentenceTransformer has one dense vector of a text."""


def is_trained_as(folder: Path, class_name: ModelClass) -> bool:
    """Return whether a class of sentence-transformers fits a model, by its files.

    A SentenceTransformer is anything but a cross-encoder. Of the other classes, False
    means that sentence-transformers would add layers with random weights, and only log
    it. A model whose files name no class (config.json: `architectures`; settings of
    sentence-transformers: `model_type`) may be a SentenceTransformer or a CrossEncoder,
    not one of the others.
    """
    with explain_damage(folder):
        model_type = read_model_settings(folder).get("model_type")
        # Without modules.json it is one model of transformers, which config.json names.
        is_bare = not (folder / "modules.json").is_file()
        architectures = _read_architectures(folder)
        is_classifier = _has_suffix(architectures, "ForSequenceClassification")
        is_masked = _has_suffix(architectures, "ForMaskedLM")
        match class_name:
            case "SentenceTransformer":
                is_bare_classifier = is_bare and is_classifier
                return model_type != "CrossEncoder" and not is_bare_classifier
            case "CrossEncoder":
                # A model without a head has an architecture such as BertModel.
                has_head = any("For" in name for name in architectures)
                if model_type == class_name:
                    return True
                if _is_static(folder) or (model_type and not is_bare):
                    return False
                return not architectures or (has_head and not is_masked)
            case "SparseEncoder":
                return model_type == class_name or (is_masked and is_bare)
            case "MultiVectorEncoder":
                is_colbert = model_type == class_name or is_foreign_colbert(folder)
                return is_colbert or is_colpali(folder)


def is_foreign_colbert(folder: Path) -> bool:
    """Return whether PyLate or Stanford's library has saved a model.

    Models of PyLate that were saved before sentence-transformers 5 do not name their
    class; their settings show it.
    """
    settings = read_model_settings(folder)
    is_pylate = settings.get("model_type") == "ColBERT" or "query_prefix" in settings
    return is_pylate or _has_suffix(_read_architectures(folder), "HF_ColBERT")


def is_colpali(folder: Path) -> bool:
    """Return whether a model is of ColPali's kind, such as ColQwen2ForRetrieval."""
    return _has_suffix(_read_architectures(folder), "ForRetrieval")


def has_token_vectors(folder: Path) -> bool:
    """Return whether a model gives a vector for each token: any that is not static.

    A static model looks up a vector for each word piece, and gives their mean.
    """
    with explain_damage(folder):
        return not _is_static(folder)


def _is_static(folder: Path) -> bool:
    module = read_first_module(folder, "document")
    settings = read_json_file(folder / "config.json")
    is_distilled = settings.get("model_type") == "model2vec"
    return module.type_name.endswith("StaticEmbedding") or is_distilled


def _read_architectures(folder: Path) -> Sequence[str]:
    """Return the names of classes of transformers in config.json; empty if none."""
    settings = read_json_file(folder / "config.json")
    architectures: Sequence[str] = settings.get("architectures") or ()
    return architectures


def _has_suffix(names: Sequence[str], suffix: str) -> bool:
    return any(name.endswith(suffix) for name in names)
