"""The command line: parse, call, print (through console). The only place that exits."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.exceptions import TyperException

from harness.console import embed, tables
from harness.console.printing import console_of, print_csv, print_json, print_results, say, show, warn
from retrievers.errors import BackendError, HarnessError, InputError, NotShown, Problem, did_you_mean

app = typer.Typer(
    help="Which retriever should I use on my own documents, and is the difference real?",
    epilog="Start with: harness init FOLDER, or harness run experiments/quickstart.toml",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
caches = typer.Typer(help="What was embedded once and is never embedded again.", rich_markup_mode=None)
app.add_typer(caches, name="cache")
app.command("embed")(embed.embed)
caches.command("import")(embed.import_parts)


def _names() -> list[str]:
    """Measures, for the shell's completion."""
    from harness.measures.table import MEASURES

    return list(MEASURES)


ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")]
Folder = Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")]
Qrels = Annotated[Path, typer.Argument(metavar="QRELS|RESULTS", help="TREC judgments, or a results folder alone.")]
Runs = Annotated[list[Path] | None, typer.Argument(metavar="RUN", help="TREC runs, plain or gzip.")]
MEASURE = typer.Option("--measure", "-m", help="A measure; may be given again.", autocompletion=_names)
Measures = Annotated[list[str] | None, MEASURE]
Grades = Annotated[str | None, typer.Option(help="Another grade rule for a results folder: linear, binary, …")]
Queries = Annotated[Path | None, typer.Option(help="Only these queries: a file with one id a line.")]
SKIP_NO_RELEVANT = typer.Option(
    "--skip-no-relevant", help="Leave out queries without a relevant document; else they score 0."
)
NoRelevant = Annotated[bool, SKIP_NO_RELEVANT]
INTERSECTION = typer.Option("--intersection", help="Leave out queries that a run lacks; else they score 0.")
DOUBLE = typer.Option("--double", help="Tell scores apart as trec_eval 10.0, in 64 bits; else as 9.0.8, in 32.")
ONLY = typer.Option(help="Run this retriever, take the others' rankings; may be given again.")
Fresh = Annotated[bool, typer.Option("--fresh", help="Embed anew what the cache holds.")]
MaxCost = Annotated[float | None, typer.Option(min=0, metavar="USD", help="Dollars that may be spent.")]
Form = Annotated[Literal["table", "csv"], typer.Option("--format", help="How rows are printed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


class Interrupted(Exception):
    """Ctrl-C, with what is kept and how to go on."""


def _version(wanted: bool) -> None:
    """Print which release this is, and stop."""
    if wanted:
        from importlib.metadata import version

        say(f"harness {version('retriever-harness')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What stands before a command's name."""


@app.command()
def run(
    experiment: ExperimentFile,
    results: Annotated[Path, typer.Option(help="Where results go: RESULTS/<name>/.")] = Path("results"),
    only: Annotated[list[str] | None, ONLY] = None,
    fresh: Fresh = False,
    max_cost: MaxCost = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment: index, replay, score, compare, report."""
    try:
        from harness import pipeline
        from harness.console.progress import Progress
        from harness.running.options import Options

        with Progress(console_of(stderr=True), quiet=quiet) as progress:
            options = Options(results, tuple(only or ()), fresh, max_cost, progress.watch)
            found = pipeline.run(experiment, options)
    except KeyboardInterrupt:
        raise Interrupted(_kept(experiment, results)) from None
    print_results(found, quiet=quiet, as_json=as_json)
    if failed := found.manifest.failed:
        raise BackendError("\n".join(f"{name}: {error}" for name, error in failed.items()))


@app.command()
def check(
    target: Annotated[Path, typer.Argument(metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set.")],
    as_json: Json = False,
) -> None:
    """Tell all that is wrong, and what will be counted, before anything is embedded."""
    from harness.running.check import check as look

    try:
        report = look(target)
    except InputError as error:
        if not as_json:
            raise
        problems = error.problems or (Problem(str(target), str(error)),)
        print_json(problems=[problem._asdict() for problem in problems])
        raise typer.Exit(error.exit_code) from None
    if as_json:
        print_json(problems=[], **report.as_json())
    else:
        say(*report.lines())


@app.command()
def plan(
    experiment: ExperimentFile,
    results: Annotated[Path, typer.Option(help="Where earlier runs lie: they tell how fast models are.")] = Path(
        "results"
    ),
    shards: Annotated[int | None, typer.Option(min=1, help="Say what each of so many shares would take.")] = None,
    as_json: Json = False,
) -> None:
    """Tell what a run would take before anything is sent: texts, tokens, calls, dollars, minutes. No network."""
    from harness.running.plan import plan as look_ahead

    planned = look_ahead(experiment, results=results)
    share = {} if shards is None else {"shard": planned.share(shards)}
    if as_json:
        print_json(plan=[row._asdict() for row in planned.rows], total=planned.total(), **share, notes=planned.notes)
    else:
        show(tables.plan, planned, shards)


@app.command()
def score(
    qrels: Qrels,
    runs: Runs = None,
    measure: Measures = None,
    by_query: Annotated[bool, typer.Option("--by-query", "-q", help="Print every query's score.")] = False,
    grades: Grades = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    intersection: Annotated[bool, INTERSECTION] = False,
    double: Annotated[bool, DOUBLE] = False,
    form: Form = "table",
    as_json: Json = False,
) -> None:
    """Score rankings: anyone's TREC files, or a results folder by other measures. Nothing is embedded."""
    from harness.scoring import saved
    from harness.scoring.trec_runs import Conventions

    if as_json and form == "csv":
        raise InputError(Problem("--json", "cannot go with --format csv", "choose one of them"))
    only = saved.read_ids(queries) if queries else None
    conventions = Conventions(skip_no_relevant, intersection, only, "double" if double else "single")
    found = saved.score_rankings(qrels, runs or (), measure or (), rule=grades, conventions=conventions)
    warn(*(f"{one.name}: {note}" for one in found for note in one.notes))
    summary = list(saved.summary_rows(found))
    rows = [asdict(row) for one in found for row in one.rows()] if by_query else []
    if as_json:
        print_json(**({"scores": rows} if by_query else {}), summary=summary)
    elif form == "csv":
        print_csv(rows if by_query else summary)
    elif by_query:
        for one in found:
            show(tables.by_query, [row for row in rows if row["retriever"] == one.name], one.name)
    else:
        show(tables.scoreboard, summary)


@app.command()
def compare(
    qrels: Qrels,
    runs: Runs = None,
    measure: Measures = None,
    baseline: Annotated[str | None, typer.Option(help="Compare each other run with this one; else all pairs.")] = None,
    margin: Annotated[float | None, typer.Option(help="A difference of means that does not matter.")] = None,
    test: Annotated[str, typer.Option(help="What decides: wilcoxon, randomization, t, sign.")] = "wilcoxon",
    correction: Annotated[str, typer.Option(help="holm, hommel, bonferroni, bh, tukey.")] = "holm",
    grades: Grades = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    form: Form = "table",
    as_json: Json = False,
) -> None:
    """Compare runs query by query: differences, exact tests, a verdict. The first measure decides."""
    from harness.scoring import saved
    from harness.scoring.trec_runs import Conventions
    from harness.stats import Settings

    if as_json and form == "csv":
        raise InputError(Problem("--json", "cannot go with --format csv", "choose one of them"))
    settings = Settings(test=test, correction=correction, margin=margin)  # type: ignore[arg-type]  # it checks them
    conventions = Conventions(skip_no_relevant, queries=saved.read_ids(queries) if queries else None)
    found = saved.score_rankings(qrels, runs or (), measure or (), rule=grades, conventions=conventions)
    if len(found) < 2:
        raise InputError(Problem(str(qrels), "there is only one run", "give two or more"))
    warn(*(f"{one.name}: {note}" for one in found for note in one.notes))
    compared = saved.compare_runs(found, baseline=baseline, settings=settings)
    rows = [asdict(row) for row in compared.rows]
    summary = list(saved.summary_rows(found))
    if as_json:
        print_json(summary=summary, comparisons=rows)
    elif form == "csv":
        print_csv(rows)
    else:
        show(tables.verdict, summary, rows, compared.whole, settings)


@app.command()
def report(results: Folder, quiet: Quiet = False, as_json: Json = False) -> None:
    """Write the report of a results folder anew, and show what it says."""
    from harness import records
    from harness.report import write_report

    found = records.read(results)
    write_report(found)
    print_results(found, quiet=quiet, as_json=as_json)


@app.command()
def gate(
    results: Folder,
    baseline: Annotated[str, typer.Option(help="The retriever in use.")],
    challenger: Annotated[str, typer.Option(help="The retriever that would replace it.")],
    margin: Annotated[float, typer.Option(help="The loss of the primary measure's mean that is still acceptable.")],
    as_json: Json = False,
) -> None:
    """Exit with 0 where a challenger is shown not to be worse by the margin, with 1 where it is not."""
    from harness import records, stats
    from harness.scoring import saved

    found = records.read(results)
    new, old = saved.primary_scores(found, [challenger, baseline])
    resolved = found.manifest.resolved
    verdict = stats.gate(new, old, margin=margin, alpha=resolved.statistics["alpha"], seed=resolved.seed)
    if as_json:
        print_json(**asdict(verdict))
    if not verdict.passed:
        raise NotShown(f"gate failed: {verdict.reason}")
    if not as_json:
        say(f"gate passed: {verdict.reason}")


@app.command()
def reproduce(
    results: Folder, fresh: Fresh = False, max_cost: MaxCost = None, quiet: Quiet = False, as_json: Json = False
) -> None:
    """Run the experiment of a results folder again: exit with 0 where the same comes out, with 1 where not."""
    from harness.console.progress import Progress
    from harness.reproduce import reproduce as again
    from harness.running.options import Options

    with Progress(console_of(stderr=True), quiet=quiet) as progress:
        found = again(results, Options(fresh=fresh, max_cost=max_cost, watch=progress.watch))
    if as_json:
        print_json(**found._asdict())
    elif not quiet:
        say(found.sentence())


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Documents and labelled queries.")],
    output: Annotated[Path | None, typer.Option(help="The file to write; else <folder>.toml here.")] = None,
) -> None:
    """Look at a folder of documents and labels, and write an experiment that runs."""
    from harness.experiment.init import write_experiment

    found = write_experiment(folder, output)
    say(*found.lines())


@caches.command()
def info(as_json: Json = False) -> None:
    """Tell what the cache holds, by model."""
    from retrievers.cache import Cache, default_path

    with Cache(default_path()) as cache:
        held = cache.info()
    if as_json:
        models = [{"fingerprint": one.fingerprint, "rows": one.rows, "bytes": one.bytes} for one in held]
        print_json(path=str(cache.path), models=models)
    else:
        say(f"{cache.path}: {sum(one.rows for one in held):,} rows")
        say(*(f"{one.rows:>10,} rows {one.bytes / 1e6:>9,.1f} MB  {one.fingerprint}" for one in held))


@caches.command()
def verify(
    experiment: Annotated[Path | None, typer.Argument(help="Whose models embed a sample again.")] = None,
    as_json: Json = False,
) -> None:
    """Check every row's checksum, and how far models have drifted: exit with 1 where something is wrong."""
    from harness.running.drift import DRIFTED, drifts
    from retrievers.cache import Cache, default_path

    with Cache(default_path()) as cache:
        held = cache.info(check=True)
    rows, damaged = sum(one.rows for one in held), sum(one.damaged for one in held)
    found = list(drifts(experiment)) if experiment else []
    if as_json:
        print_json(path=str(cache.path), rows=rows, damaged=damaged, drift=[one._asdict() for one in found])
    else:
        say(f"{cache.path}: {rows:,} rows, {damaged:,} damaged", *(one.sentence() for one in found))
    if damaged:
        raise NotShown(f"{damaged:,} rows are damaged: they count as absent, and runs embed them anew")
    if moved := [one.retriever for one in found if one.largest > DRIFTED]:
        raise NotShown(f"{', '.join(moved)}: no longer the model that was cached; run with --fresh")
    if experiment and (unseen := [one.retriever for one in found if not one.compared] or ["no encoder"] * (not found)):
        raise NotShown(f"{', '.join(unseen)}: nothing was compared, since none of its vectors is cached")


@caches.command()
def clear(
    fingerprint: Annotated[str | None, typer.Argument(help="One model, as `harness cache info` names it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every model.")] = False,
) -> None:
    """Remove one model's rows, or all: they will be embedded, and paid for, again."""
    from retrievers.cache import Cache, default_path

    if (fingerprint is None) != everything:
        raise InputError(Problem("FINGERPRINT", "is missing", "`harness cache info` lists them; or --all"))
    with Cache(default_path()) as cache:
        known = [one.fingerprint for one in cache.info()]
        if fingerprint is not None and fingerprint not in known:
            raise InputError(Problem(fingerprint, "is not in the cache", did_you_mean(fingerprint, known)))
        say(f"{cache.path}: {cache.clear(fingerprint):,} rows removed")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake ends in one message and an exit code, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        # Typer tells of an interrupt by its exit code alone.
        code = app(words or ["--help"], prog_name="harness", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:
            raise Interrupted("stopped")
    except HarnessError as error:
        warn(tables.message(error))
        code = error.exit_code
    except TyperException as error:
        warn(tables.usage(error))
        code = InputError.exit_code
    except SystemExit as gone:
        # Typer and rich exit with 1 where the reader of a pipe went away: that is no failed gate.
        code = 0 if gone.code == 1 else gone.code
    except OSError as error:
        code = _unwritten(error)
    except (Interrupted, KeyboardInterrupt) as stop:
        warn(str(stop) or "stopped")
        code = 130
    sys.exit(code or 0)


def _unwritten(error: OSError) -> int:
    """The exit code where standard output takes no more; any other failure stays what it is."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO) or error.filename is not None:
        raise error
    with suppress(OSError):
        sys.stdout.close()  # else Python tries once more to write what is left, and complains
    if error.errno == errno.EPIPE:
        return 0
    warn(tables.message(InputError(Problem("", f"cannot be written: {error.strerror}", "make room"))))
    return InputError.exit_code


def _kept(experiment: Path, results: Path) -> str:
    """What a stopped run leaves behind, and how to go on."""
    from harness.experiment import load
    from harness.pipeline import unfinished

    said = "stopped: what was embedded is cached, the same command goes on from there"
    try:
        aside = unfinished(results / load(experiment).experiment.name)
    except InputError:
        return said
    if not any(aside.glob("runs/*.trec")):
        return said
    finished = f"harness score {aside / 'qrels.trec'} {aside / 'runs' / '*.trec'}"
    return f"{said}; finished rankings lie in {aside} ({finished})"


if __name__ == "__main__":
    main()
