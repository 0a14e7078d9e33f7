"""The one loop over retrievers.

Each answers all queries (`harness.running.answer`), answers them again for each further
trial, and is timed (`harness.running.query_times`). One that fails for good has a run
without rankings, as have those that use it; the others go on.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from harness.build.built_retriever import BuiltRetriever
from harness.records import RetrieverFailure, Run
from harness.running.answer import RunState, answer_queries
from harness.running.context import RunContext, run_resources
from harness.running.query_times import QueryTimes, query_times
from harness.running.replayed import StageResult
from harness.running.requirements import check_requirements
from harness.wording.failures import failure_lines, skipped_reason
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.meter import Meter
from retrievers.options.placeholders import redact_keys
from retrievers.options.user_code import wrap_user_errors
from retrievers.types import (
    AnswerFacts,
    Ranking,
    RetrieverFacts,
    merge_duplicates,
    parse_facts,
    stored_facts,
)

log = logging.getLogger(__name__)


def run_retrievers(
    retrievers: Sequence[BuiltRetriever],
    context: RunContext,
    reused: Mapping[str, Run],
    *,
    on_finished: Callable[[Run], None],
) -> dict[str, Run]:
    """Answer all queries with every retriever.

    A retriever that fails for good has a run with an error, as those that use it; the
    others go on.

    Args:
        retrievers: each after those that it uses.
        context: what they share.
        reused: retriever -> a stored run that is used instead of searching again.
        on_finished: called with each run that has rankings, as soon as it is complete.

    Returns:
        Retriever -> its run, reused or new.

    Raises:
        InputError: a part lacks a key or a price; raised before anything is embedded.
    """
    state = RunState(
        context,
        run_resources(context),
        runs=dict(reused),
        retrievers={built.name: built for built in retrievers},
    )
    pending = [built for built in retrievers if built.name not in reused]
    check_requirements(pending, context)
    try:
        for built in pending:
            run = _run_retriever(built, state)
            state.runs[built.name] = run
            if not run.error:
                on_finished(run)
    finally:
        for store in state.resources.stores.values():
            store.close()
    return state.runs


def order_runs(runs: Mapping[str, Run], names: Sequence[str]) -> list[Run]:
    """Return the runs in the order of the retrievers' names.

    Raises:
        BackendError: every retriever failed.
    """
    ordered = [runs[name] for name in names]
    if all(run.error for run in ordered):
        failures = [RetrieverFailure(run.retriever, run.error) for run in ordered]
        raise BackendError("\n".join(failure_lines(failures)))
    return ordered


def _run_retriever(built: BuiltRetriever, state: RunState) -> Run:
    """Return the run of one retriever; if it fails, with the reason and no rankings."""
    context = state.context
    meter = Meter(context.budget, lambda meter: context.on_progress(built.name, meter))
    result = StageResult({})
    further_trials: list[Mapping[str, Ranking]] = []
    times = QueryTimes({}, AnswerFacts())
    error = ""
    try:
        _require_parts(built, state)
        with wrap_user_errors(built.components):
            replayed = answer_queries(built, built.retriever, state, meter)
            further_trials += _repeat_answers(built, state, meter)
            times = query_times(built, replayed, state, meter)
            # Last: a retriever that fails in any trial has no rankings.
            result = replayed.result
    except DataChanged:
        raise  # it stops the whole run
    except HarnessError as failure:
        # What shows only now (a model that the hub does not have, a store that another
        # process uses) stops this retriever and those that use it, not the others.
        log.debug("%s failed", built.name, exc_info=failure)
        error = _encodable(redact_keys(str(failure)))
        further_trials = []
    rankings = _merge_representatives(result.answers, state, meter)
    answer_facts = replace(
        times.facts,
        passages=result.facts.answers.passages,
        trials=_trial_count(built),
    )
    facts = replace(result.facts, answers=answer_facts)
    return Run(
        built.name,
        rankings,
        further_trials=tuple(
            _merge_representatives(answers, state, meter) for answers in further_trials
        ),
        stages=meter.stages(),
        notes=meter.notes(),
        facts=_encodable_facts(facts),
        latency=times.latency,
        error=error,
    )


def _repeat_answers(
    built: BuiltRetriever, state: RunState, meter: Meter
) -> list[Mapping[str, Ranking]]:
    """Return the rankings of each trial after the first."""
    trials: list[Mapping[str, Ranking]] = []
    for trial in range(2, built.trials + 1):
        repeated = answer_queries(built, built.retriever, state.of_trial(trial), meter)
        trials.append(repeated.result.answers)
    return trials


def _trial_count(built: BuiltRetriever) -> int | None:
    """Return the trials; None if there is one, of a retriever that answers alike."""
    return None if built.trials == 1 and built.is_repeatable else built.trials


def _require_parts(built: BuiltRetriever, state: RunState) -> None:
    failed = [name for name in built.uses if state.runs[name].error]
    if failed:
        raise BackendError(skipped_reason(failed))


def _merge_representatives(
    rankings: Mapping[str, Ranking], state: RunState, meter: Meter
) -> Mapping[str, Ranking]:
    """Return rankings in which documents that labels name by one value are one."""
    representatives = state.context.dataset.representatives
    if not representatives:
        return rankings
    with meter.stage("collapse"):
        merged = {
            query_id: merge_duplicates(ranking, representatives)
            for query_id, ranking in rankings.items()
        }
        hits_before = sum(len(ranking) for ranking in rankings.values())
        hits_after = sum(len(ranking) for ranking in merged.values())
        meter.count(collapsed=hits_before - hits_after)
    return merged


def _encodable_facts(facts: RetrieverFacts) -> RetrieverFacts:
    """Return facts as a file of UTF-8 will give them back."""
    texts = stored_facts(facts)
    return parse_facts({key: _encodable(text) for key, text in texts.items()})


def _encodable(text: str) -> str:
    """Return a text with lone surrogates spelled out: UTF-8 has no bytes for them."""
    return text.encode("utf-8", "backslashreplace").decode()
