"""The experiment of a trial."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.dataset import Dataset, DatasetReference
from harness.dataset.try_folder import TRY_MARK
from harness.experiment import find_reference, load
from harness.init.template import ExperimentDraft, NamedModel, experiment_text
from harness.init.write_experiment import MAX_NAME_LENGTH, valid_name
from harness.without_labels.layout import TRY_SUFFIX, TryFolder
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

POOL_DEPTH = 5
"""Documents of each ranking that people judge; measures look no deeper."""
RESERVED_NAMES = ("bm25", "minilm", "hashing", "hybrid")
"""Names of the retrievers that a trial has by itself."""
KIND_AND_MODEL = re.compile(r"([a-z][a-z0-9-]*):(.*)")
"""A kind and a model, such as `openai:text-embedding-3-small`."""
LOCAL_KIND = "sentence-transformers"


def parse_model(name: str) -> NamedModel:
    """Return a model of the command line: of the hub, or KIND:NAME.

    Its retriever is called as the last part of the model's name, in small letters.

    Raises:
        InputError: it names no model.

    >>> parse_model("intfloat/multilingual-e5-small")[:2]
    ('multilingual-e5-small', 'sentence-transformers')
    >>> parse_model("openai:text-embedding-3-small").kind
    'openai'
    """
    match = KIND_AND_MODEL.fullmatch(name)
    kind = match[1] if match else LOCAL_KIND
    model = match[2] if match else name
    if not model.strip():
        remedy = "--model NAME, such as --model intfloat/multilingual-e5-small"
        raise InputError(Problem("--model", "names no model", remedy))
    short_name = valid_name(Path(model.rstrip("/")).name).lower()
    if short_name in RESERVED_NAMES:
        short_name = f"{short_name}-2"[:MAX_NAME_LENGTH]
    return NamedModel(short_name, kind, model)


def write_trial_experiment(
    path: Path,
    dataset: Dataset,
    reference: DatasetReference,
    models: Sequence[NamedModel] = (),
) -> None:
    """Write an experiment, or add models to one that exists.

    One that exists keeps what its user changed.

    Args:
        path: of the experiment's file.
        dataset: with a sample of documents, whose language decides on the models.
        reference: to the data set.
        models: to add; one whose name is there already is left out.

    Raises:
        InputError: a model's kind is unknown, or the file cannot be written.
    """
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        present = {table["name"] for table in _retriever_tables(text, path)}
        new_models = [model for model in models if model.name not in present]
        if not new_models:
            return
        text = text.rstrip("\n") + "\n"
        text += "".join(map(_model_block, new_models))
    else:
        draft = ExperimentDraft(
            name=_experiment_name(path),
            reference=reference,
            dataset=dataset,
            dropped_labels=0,
            production=None,
            has_conversations=False,
            cutoff=POOL_DEPTH,
            mark=TRY_MARK,
            models=tuple(models),
        )
        text = experiment_text(draft)
    load(tomllib.loads(text))  # refuses an unknown kind of model before it is written
    temporary = path.with_name(f"{path.name}.part")
    with explain_write_errors(path):
        with open_text_file(temporary, "w") as file:
            file.write(text)
        temporary.replace(path)


def refuse_other_documents(folder: TryFolder) -> None:
    """Refuse the trial of a folder that only has the same name.

    Its user may have narrowed or widened the documents. What cannot be read is reported
    where the experiment is loaded.

    Raises:
        InputError: the experiment that is there is about other documents.
    """
    if not folder.experiment.is_file():
        return
    try:
        reference, _ = find_reference(folder.experiment)
    except InputError:
        return
    if reference.scheme or not reference.documents:
        return
    present = (reference.folder / reference.documents).resolve()
    named = folder.documents.resolve()
    if not (present.is_relative_to(named) or named.is_relative_to(present)):
        problem = f"is the trial of {present}"
        remedy = "rename it, or try these documents in another working directory"
        raise InputError(Problem(str(folder.path), problem, remedy))


@contextmanager
def restored_on_error(path: Path) -> Iterator[None]:
    """Restore an experiment's file if the block inside raises InputError.

    The models that it was just given may be the reason. After another error the same
    command may succeed, and continues with the file as it is.
    """
    earlier_text = path.read_text(encoding="utf-8") if path.is_file() else None
    try:
        yield
    except InputError:
        if earlier_text is None:
            path.unlink(missing_ok=True)
        elif path.read_text(encoding="utf-8") != earlier_text:
            path.write_text(earlier_text, encoding="utf-8", newline="\n")
        raise


def _experiment_name(path: Path) -> str:
    """Return the name of the documents; with "titles" if these were taken out."""
    documents_name = path.parent.name.removesuffix(TRY_SUFFIX)
    return valid_name(f"{documents_name}{path.stem.removeprefix('try')}")


def _retriever_tables(text: str, path: Path) -> list[dict[str, str]]:
    """Return the tables of [[retrievers]] that have a name.

    Raises:
        InputError: the text is not TOML.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(Problem(str(path), f"is not TOML: {error}")) from None
    retrievers = tables.get("retrievers", [])
    return [table for table in retrievers if "name" in table]


def _model_block(model: NamedModel) -> str:
    name, kind, model_name = map(json.dumps, model)
    return (
        f"\n[[retrievers]]\nname = {name}\n"
        f"encoder = {{ kind = {kind}, model = {model_name} }}\n"
    )
