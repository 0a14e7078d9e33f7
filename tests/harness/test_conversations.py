"""Queries with a history: what is searched with, which queries belong together, how
tools write conversations.
"""

from pathlib import Path

import pytest

from harness.build.build import build
from harness.build.built_retriever import BuiltRetriever
from harness.build.shared_words import unshared_queries
from harness.dataset import load_dataset
from harness.experiment import DatasetConfig, Experiment, load
from harness.experiment.retriever_config import ConversationConfig
from harness.experiment.retriever_schema import CustomConfig
from harness.pipeline import run
from harness.running.embedding_tasks import embedding_tasks
from harness.running.options import RunOptions
from harness.scoring.query_units import query_clusters
from retrievers.bm25 import BM25
from retrievers.types import Query
from tests.support import layouts
from tests.support.small import refusal

DOCUMENTS = {
    "furka": "The Furka pass is closed in winter.",
    "grimsel": "The Grimsel pass opens in May.",
    "train": "A car train runs below the mountain.",
}
ASKED = [
    {"id": "a1", "query": "Is the Furka pass open?", "relevant": ["furka"]},
    {
        "id": "a2",
        "query": "and in May?",
        "relevant": ["furka"],
        "history": ["Is the Furka pass open?", "Not in winter."],
    },
    {
        "id": "b1",
        "query": "and in May?",
        "relevant": ["grimsel"],
        "history": [
            {"role": "user", "content": "the Grimsel"},
            {"role": "assistant", "content": "A pass."},
        ],
    },
]


def dataset(folder: Path, queries: list[dict[str, object]]) -> Path:
    layouts.jsonl(
        folder / "documents.jsonl",
        [{"id": id_, "text": text} for id_, text in DOCUMENTS.items()],
    )
    layouts.jsonl(folder / "queries.jsonl", queries)
    return folder


def experiment(
    folder: Path, more: dict[str, object], **bm25: object
) -> dict[str, object]:
    words = {"name": "words", "kind": "bm25", "stemming": "", **bm25}
    return {
        "name": "talk",
        "dataset": str(folder),
        "primary": "RR",
        "report": False,
        "retrievers": [words],
        **more,
    }


def values(results, retriever: str) -> dict[str, float]:
    scores = results.scores
    retriever_scores = scores[scores["retriever"] == retriever]
    return dict(
        zip(retriever_scores["query_id"], retriever_scores["value"], strict=True)
    )


def test_a_retriever_searches_with_the_last_question_or_with_all_that_was_said(
    tmp_path,
):
    """By hand: "and in May?" shares most words with grimsel; with its history, furka
    does.
    """
    folder = dataset(tmp_path / "data", ASKED)
    more = {"conversation": {"text": "all"}}
    path = experiment(folder, more)
    path["retrievers"].append(
        {**path["retrievers"][0], "name": "last", "conversation": {"text": "last"}}
    )
    results = run(path, RunOptions(tmp_path / "out"))
    assert values(results, "words") == {"a1": 1.0, "a2": 1.0, "b1": 1.0}
    assert values(results, "last") == {"a1": 1.0, "a2": 0.5, "b1": 1.0}
    sweep = {
        "default": "words",
        "of": "words",
        "conversation.text": ["last", "all", "{query} {history}"],
    }
    swept = run(
        experiment(folder, {"sweep": sweep}, conversation={"text": "last"}),
        RunOptions(tmp_path / "swept"),
    )
    assert [values(swept, name)["a2"] for name in swept.retrievers] == [0.5, 1.0, 1.0]
    assert results.queries["a2"].query.history == (
        "Is the Furka pass open?",
        "Not in winter.",
    )


def test_words_of_the_history_are_shared_where_bm25_searches_with_it(tmp_path):
    bare = {**ASKED[1], "id": "a3", "query": "why?"}
    folder = dataset(tmp_path / "data", [ASKED[0], bare])
    unshared = []
    for text in ("all", "last"):
        built = build(load(experiment(folder, {"conversation": {"text": text}})))
        unshared.append(unshared_queries(built.dataset, built.retrievers))
    assert unshared == [[], ["a3"]]


def test_an_encoder_embeds_only_what_its_own_retrievers_search_with(tmp_path):
    """BM25 searches with the history, vectors without it."""
    table = experiment(dataset(tmp_path / "data", ASKED), {})
    table["retrievers"][0]["conversation"] = {"text": "all"}
    table["retrievers"].append({"name": "dense", "encoder": {"kind": "hashing"}})
    queries = embedding_tasks(table)[-1]
    texts = [query.text for read_texts in queries.sources for query in read_texts()]
    assert queries.role == "query"
    assert texts == ["Is the Furka pass open?", "and in May?"]


def test_the_conversation_of_an_experiment_in_python_counts(tmp_path):
    built = Experiment(
        name="talk",
        dataset=DatasetConfig(path=str(dataset(tmp_path, ASKED))),
        primary="RR",
        conversation=ConversationConfig(text="all"),
        retrievers=(CustomConfig(name="words", kind="bm25"),),
    )
    [words] = load(built).experiment.retrievers
    assert words.conversation == built.conversation


def test_turns_of_a_conversation_are_one_cluster_and_equal_words_in_two_are_not(
    tmp_path,
):
    history = [*ASKED[1]["history"], "and in May?", "Yes."]
    follow = {"id": "a3", "query": "why?", "history": history, "relevant": ["furka"]}
    dataset_read = load_dataset(dataset(tmp_path / "data", [*ASKED, follow]))
    assert [query.fields.get("turn") for query in dataset_read.queries] == [
        None,
        "2",
        "2",
        "3",
    ]
    assert query_clusters(dataset_read.queries, None) == ("a1", "a1", "", "a1")


@pytest.mark.parametrize(
    "row",
    [
        {
            "turns": [
                {"role": "user", "content": "the Grimsel"},
                {"role": "assistant", "content": "A pass."},
                {"role": "user", "content": "and in May?"},
                {"role": "assistant", "content": "Yes."},
            ]
        },  # DeepEval
        {
            "user_input": [
                {"type": "human", "content": "the Grimsel"},
                {"type": "ai", "content": "A pass."},
                {"type": "human", "content": "and in May?"},
            ]
        },  # Ragas
    ],
)
def test_conversations_of_other_tools_are_read(tmp_path, row):
    (query,) = load_dataset(
        dataset(tmp_path / "data", [{**row, "id": "b1", "relevant": ["grimsel"]}])
    ).queries
    assert (query.text, query.history) == ("and in May?", ("the Grimsel", "A pass."))


def test_a_history_that_is_no_list_is_one_clear_error(tmp_path):
    error = refusal(
        load_dataset,
        dataset(tmp_path / "data", [{**ASKED[0], "history": {"said": "no"}}]),
    )
    assert "queries.jsonl:1: 'history' is not a list of messages" in str(error)


def test_a_history_that_has_the_word_of_a_placeholder_stays_as_it_is() -> None:
    query = Query("q", "and {history}?", history=("what does {query} mean",))
    built = BuiltRetriever("words", BM25(), conversation="all")
    [asked] = built.conversation_queries([query])
    assert asked.text == "what does {query} mean\nand {history}?"
