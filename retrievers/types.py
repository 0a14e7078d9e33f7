"""The protocols that other packages implement."""

from __future__ import annotations

from retrievers.conditions import FilterValues as FilterValues
from retrievers.conditions import QueryFilters as QueryFilters
from retrievers.document import Document as Document
from retrievers.document import sample_documents as sample_documents
from retrievers.embedded import MAX_DIMENSIONS as MAX_DIMENSIONS
from retrievers.embedded import DenseVectors as DenseVectors
from retrievers.embedded import Embedded as Embedded
from retrievers.embedded import PairScores as PairScores
from retrievers.embedded import Role as Role
from retrievers.facts import AnswerFacts as AnswerFacts
from retrievers.facts import CollectionFacts as CollectionFacts
from retrievers.facts import Fact as Fact
from retrievers.facts import ModelFacts as ModelFacts
from retrievers.facts import Origin as Origin
from retrievers.facts import RerankerFacts as RerankerFacts
from retrievers.facts import RetrieverFacts as RetrieverFacts
from retrievers.facts import VectorFacts as VectorFacts
from retrievers.model import Encoder as Encoder
from retrievers.model import Limits as Limits
from retrievers.model import Model as Model
from retrievers.model import Reranker as Reranker
from retrievers.model import TextPair as TextPair
from retrievers.model import index_ranges as index_ranges
from retrievers.model import is_model as is_model
from retrievers.model import model_facts as model_facts
from retrievers.passage import Passage as Passage
from retrievers.passage import Span as Span
from retrievers.prices import Price as Price
from retrievers.query import Claim as Claim
from retrievers.query import Query as Query
from retrievers.query import Reference as Reference
from retrievers.ranking import SCORE_RESOLUTION as SCORE_RESOLUTION
from retrievers.ranking import Floats as Floats
from retrievers.ranking import Hit as Hit
from retrievers.ranking import Ranking as Ranking
from retrievers.ranking import merge_duplicates as merge_duplicates
from retrievers.ranking import ranked as ranked
from retrievers.ranking import round_scores as round_scores
from retrievers.ranking import with_min_score as with_min_score
from retrievers.ranking import without_documents as without_documents
from retrievers.retriever import Retriever as Retriever
from retrievers.retriever import read_facts as read_facts
from retrievers.store import Store as Store
from retrievers.stored_facts import parse_count as parse_count
from retrievers.stored_facts import parse_facts as parse_facts
from retrievers.stored_facts import stored_facts as stored_facts
from retrievers.texts.token_estimate import Counts as Counts
from retrievers.trace import ToolUse as ToolUse
from retrievers.trace import Trace as Trace

__all__ = [
    "MAX_DIMENSIONS",
    "SCORE_RESOLUTION",
    "AnswerFacts",
    "Claim",
    "CollectionFacts",
    "Counts",
    "DenseVectors",
    "Document",
    "Embedded",
    "Encoder",
    "FilterValues",
    "Floats",
    "Hit",
    "Limits",
    "Model",
    "ModelFacts",
    "Origin",
    "PairScores",
    "Passage",
    "Price",
    "Query",
    "QueryFilters",
    "Ranking",
    "Reference",
    "Reranker",
    "RerankerFacts",
    "Retriever",
    "RetrieverFacts",
    "Role",
    "Span",
    "Store",
    "TextPair",
    "ToolUse",
    "Trace",
    "VectorFacts",
    "index_ranges",
    "is_model",
    "merge_duplicates",
    "model_facts",
    "parse_facts",
    "ranked",
    "read_facts",
    "round_scores",
    "sample_documents",
    "stored_facts",
    "with_min_score",
    "without_documents",
]
