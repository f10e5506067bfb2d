"""Three days of claims, end to end: the example of curation.

Makes the project in `build/demo-claims`, then plays one day after another: the messages land in bronze, Karat curates them
into silver. A second demo finds everything landed, runs once and changes nothing.
"""

from pathlib import Path

from land import DAYS, land
from pyspark.sql import DataFrame
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from karat import Project
from karat.scaffold import create_project

FOLDER = Path("build/demo-claims")
CONSOLE = Console()
NEWS = {
    1: "Two systems, AdminSystem and CRM, report their claimants, policies, claims, providers and payments.",
    2: "Margaret Olsen moves, one claim is denied, a payment is corrected; one row is late, one has no key.",
    3: "CRM hears of the move, Margaret's claim is approved and paid; an outdated policy row changes nothing.",
}
NEXT = """
  .venv/bin/karat tables --project build/demo-claims     every table: rows, version, last run
  .venv/bin/karat plan --project build/demo-claims       what a run would do now, and why
  .venv/bin/karat progress --project build/demo-claims   the runs you have just seen
  edit build/demo-claims/sql/claims.sql, then:
  .venv/bin/karat run --project build/demo-claims        the rows within the lookback go through the new query
  make test                                       style, types and all tests
"""


def main() -> None:
    """Play the days that have not been played, run once more, show what came of it."""
    if not (FOLDER / "karat.yml").exists():
        create_project(FOLDER, "claims")
        CONSOLE.print(f"A new project in [bold]{FOLDER}[/]: look into silver/curation.json and sql/.")
    project = Project.open(FOLDER)
    try:
        for day in DAYS:
            play(project, day)
        run_again(project)
        show_results(project)
    finally:
        project.close()
    CONSOLE.rule("What to try next", align="left")
    CONSOLE.print(NEXT, highlight=False, soft_wrap=True)


def play(project: Project, day: int) -> None:
    """Land one day and curate it, unless an earlier demo has."""
    landed = land(FOLDER, day)
    if any(landed.values()):
        CONSOLE.rule(f"Day {day}: 2026-03-0{day + 1}", align="left")
        CONSOLE.print(NEWS[day])
        CONSOLE.print("landed in bronze: " + ", ".join(f"{rows} {table}" for table, rows in landed.items()))
        project.run(progress=True)


def run_again(project: Project) -> None:
    """A run over nothing new: the lookback is read again and every row of it recognised."""
    CONSOLE.rule("Once more, with nothing new", align="left")
    report = project.run(progress=True)
    if report.ok and any(stage.status == "succeeded" for stage in report.stages):
        report = project.run(progress=True)  # an earlier demo was stopped between landing a day and curating it
    if not all(stage.status == "unchanged" for stage in report.stages):
        CONSOLE.print("[red]Something changed or failed: see above.[/]")
        raise SystemExit(1)
    CONSOLE.print("[green]Nothing changed.[/]")


def show_results(project: Project) -> None:
    """Four tables that show the result."""
    CONSOLE.rule("What is in silver now", align="left")
    claim = project.table("silver.claims").where("claim_id = 'CLM7001'").orderBy("effective_start_date")
    show(
        "Claim CLM7001: every state with its period",
        claim.selectExpr(
            "status",
            "amount_claimed AS claimed",
            "amount_approved AS approved",
            "effective_start_date AS start",
            "effective_end_date AS end",
        ),
    )
    claimant = project.table("silver.claimants").where("claimant_id = 'C1001'").orderBy("source_system", "effective_start_date")
    show(
        "Claimant C1001: one id in two systems, two entities",
        claimant.selectExpr("source_system AS system", "street", "city", "effective_start_date AS start", "is_current AS current"),
    )
    show("Refused: a claim without its key", project.table("silver.claims_quarantine").select("reason", "original"))
    control = project.table("silver.curation_control").orderBy("table_name")
    show(
        "How far each table has been read",
        control.selectExpr("table_name", "watermark_value", "last_run_status AS status", "records_processed AS records"),
    )


def show(title: str, frame: DataFrame) -> None:
    """A small DataFrame as a table on the terminal."""
    table = Table(*frame.columns, title=title, title_justify="left")
    for row in frame.collect():
        table.add_row(*("" if value is None else escape(str(value)) for value in row))
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
