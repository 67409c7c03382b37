"""Import report: the changes by level, examples, and the rejected rows with their file."""

from collections import Counter

import typer

from commands.importing.job import ImportJob
from commands.importing.rejected_rows import ForeignFile, write_rejected_rows
from store.metadata.change_log import Event
from store.model.hierarchy import Hierarchy
from store.text import quantity

MAX_REASONS = 5


def report(job: ImportJob) -> None:
    """Print the changes, made or planned, and write the rejected rows to a file beside the imported one."""
    outcome = job.outcome
    would = "would be " if job.dry_run else ""
    for verb, event, counts in (
        ("moved", Event.MOVED, outcome.moved),
        ("added", Event.CREATED, outcome.added),
        ("changed", Event.UPDATED, outcome.changed),
        ("removed", Event.DELETED, outcome.removed),
    ):
        if counts:
            typer.echo(f"{would}{verb}: {counts.total():,} ({_by_level(job.plan.hierarchy, counts)})")
            for example in outcome.examples[event] if job.dry_run or event is Event.MOVED else ():
                typer.echo(f"  {example}")
    if not outcome.written:
        typer.echo(f"Nothing {'would change' if job.dry_run else 'changed'}.")
    if outcome.unchanged:
        typer.echo(f"unchanged: {outcome.unchanged:,}")
    if moved := sum(rejection.moved for rejection in outcome.rejections):
        typer.echo(f"not moved: {moved:,}")
    if job.prune and job.plan.pathless:
        typer.echo("Nothing was removed, because some rejected rows do not identify their nodes.", err=True)
    _report_rejected(job)


def _by_level(hierarchy: Hierarchy, counts: Counter[str]) -> str:
    """Counts in the hierarchy's order of levels; the table may also hold levels that no class defines any more."""
    return ", ".join(
        f"{counts[level]:,} {level}" for level in dict.fromkeys([*hierarchy.levels, *counts]) if counts[level]
    )


def _report_rejected(job: ImportJob) -> None:
    reasons: dict[int, str] = {}
    for rejection in job.outcome.rejections:
        reasons.setdefault(rejection.number, rejection.reason)
    is_written = not job.dry_run and _write_rejected(job, reasons)
    if reasons:
        place = f"; written to {job.file.with_suffix('.rejected.csv')}" if is_written else ""
        first = f". The first {MAX_REASONS}:" if len(reasons) > MAX_REASONS else ":"
        typer.echo(f"rejected: {quantity(len(reasons), 'row')}{place}{first}", err=True)
        for number, reason in list(reasons.items())[:MAX_REASONS]:
            typer.echo(f"  row {number}: {reason}", err=True)


def _write_rejected(job: ImportJob, reasons: dict[int, str]) -> bool:
    """Write the file of rejected rows; print why if that is not possible."""
    target = job.file.with_suffix(".rejected.csv")
    try:
        write_rejected_rows(target, reasons, job.format.contents(job.file))
    except ForeignFile:
        typer.echo(f"{target} is not a file of rejected rows; move it away and import again.", err=True)
    except OSError as error:
        typer.echo(f"{target} cannot be written: {(error.strerror or str(error)).lower()}.", err=True)
    else:
        return True
    return False
