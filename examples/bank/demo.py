"""Three days at a bank, end to end: what `make demo` runs.

Makes the project in `build/demo`, then plays one day after another: files arrive, Karat appends them to the evidence and
brings timelines and beliefs up to date. A second demo finds everything delivered and changes nothing.
"""

import filecmp
from datetime import UTC, datetime
from pathlib import Path

import yaml
from deliver import DAYS, deliver
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from karat import Project
from karat.cli.belief_pictures import receipts_picture, why_picture
from karat.cli.periods import history_picture
from karat.inspect.belief import ask, believed_row, reason, restatements
from karat.inspect.quarantine import refused_rows
from karat.inspect.tables import lake_tables
from karat.scaffold import create_project

EXAMPLE = Path(__file__).parent
FOLDER = Path("build/demo")
CONSOLE = Console()
EVENINGS = {day: datetime(2026, 3, day + 1, 22, tzinfo=UTC) for day in DAYS}
"""When the files of each day are read: the demo plays March 2026, whatever today is."""
NEWS = {
    1: "The CRM and the core banking system (CORE) describe their customers, a vendor (KYC) sends its list of assessed ones. "
    "CORE restricts Jane Carter, C123. One line comes twice, one has an undeclared field.",
    2: "The CRM has a new address of Jane. C127 is missing from the vendor's list. A file of yesterday comes again under another name. "
    "Four rows are refused; they go to quarantine with a reason.",
    3: "The CRM deletes Jane. A file of CORE arrives two days late: her restriction had been lifted on day 1. "
    "C126 and C127 are back, one payment is corrected, three more rows are refused. And since this afternoon new rules are in "
    "force (silver/customer.yml, version 2): names come from CORE first, and only CORE decides that a customer is deleted.",
}
NEXT = """
  .venv/bin/karat why customer --key C123 -p build/demo         every attribute: which source wins, and why
  .venv/bin/karat restatements customer -p build/demo           what was believed about the past, and what is now
  .venv/bin/karat conflicts customer -p build/demo              where systems differ, and which one wins
  .venv/bin/karat as-of customer --key C123 --known-at 2026-03-03T23:00 -p build/demo    what was believed on day 2
  .venv/bin/karat history customer --key C127 -p build/demo     absent from one snapshot, back in the next
  .venv/bin/karat history payment --key P1003 -p build/demo     a fact and its correction
  .venv/bin/karat quarantine show customer -p build/demo        refused rows, each with its reason and its original
  .venv/bin/karat verify -p build/demo                          rebuild timelines and beliefs from their evidence
  .venv/bin/karat tables -p build/demo                          every table: rows, version, last run
  .venv/bin/karat stream -p build/demo                          wait for files in build/demo/data; Ctrl-C ends it
  docs/tutorial.md                                              the same three days by hand, step by step
  make test                                                     style, types and all tests
"""


def main() -> None:
    """Play the days that have not been played, run once more, show what came of it."""
    prepare()
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


def prepare() -> None:
    """The project is there afterwards; one of another example, or of an older edition, is moved aside."""
    if (FOLDER / "karat.yml").exists() and not is_this_example():
        aside = next(path for n in range(1, 1000) if not (path := FOLDER.with_name(f"demo-before-{n}")).exists())
        FOLDER.rename(aside)
        CONSOLE.print(f"{FOLDER} held another example or an older edition of this one; it is now in [bold]{aside}[/].")
    if not (FOLDER / "karat.yml").exists():
        create_project(FOLDER, "bank")
        CONSOLE.print(f"A new project in [bold]{FOLDER}[/]: look into bronze/customer.yml, silver/customer.yml and deliveries/.")


def is_this_example() -> bool:
    """Whether the folder holds this example with the very declarations and deliveries it has now."""
    settings = yaml.safe_load((FOLDER / "karat.yml").read_text(encoding="utf-8"))
    found = (path for part in ("bronze", "silver", "deliveries") for path in (EXAMPLE / part).rglob("*"))
    files = [path.relative_to(EXAMPLE) for path in found if path.is_file()]
    same, _, _ = filecmp.cmpfiles(EXAMPLE, FOLDER, map(str, files), shallow=False)
    return settings.get("project") == "bank" and len(same) == len(files)


def play(project: Project, day: int) -> None:
    """Deliver one day and run, unless an earlier demo did."""
    arrived = deliver(FOLDER, day)
    if arrived:
        CONSOLE.rule(f"Day {day}: {EVENINGS[day].day} March 2026", align="left")
        CONSOLE.print(NEWS[day], highlight=False)
        CONSOLE.print("arrived: " + ", ".join(str(path.relative_to("data")) for path in arrived), highlight=False, style="dim")
        if not project.run(now=EVENINGS[day], progress=True).ok:
            give_up("A stage failed: see above. Run the demo again once it is mended.")


def run_again(project: Project) -> None:
    """A run over nothing new."""
    CONSOLE.rule("Once more, with nothing new", align="left")
    report = project.run(progress=True)
    if report.ok and any(stage.status == "succeeded" for stage in report.stages):
        report = project.run(progress=True)  # an earlier demo was stopped between delivering a day and reading it
    if not all(stage.status == "unchanged" for stage in report.stages):
        give_up("Something changed or failed: see above.")


def give_up(why: str) -> None:
    """Say why, and leave."""
    CONSOLE.print(f"[red]{why}[/]")
    raise SystemExit(1)


def show_results(project: Project) -> None:
    """One customer's history, the payments, the refused rows, and the proof."""
    CONSOLE.rule("Jane Carter: the statements of two systems, and the versions that follow", align="left")
    history_picture(project.history("customer", "C123"))
    CONSOLE.rule("Payments: a fact is kept once, and so is its correction", align="left")
    show_payments(project)
    CONSOLE.rule("Refused rows, each with its reason", align="left")
    show_refused(project)
    CONSOLE.rule("Timelines and beliefs, compared with a rebuild from the evidence", align="left")
    show_proof(project)
    CONSOLE.rule("Jane Carter's status: believed on day 2, and since day 3", align="left")
    for day in (2, 3):
        show_why(project, day)
    CONSOLE.rule("Restatements: what was believed about the past, and what is now", align="left")
    show_receipts(project)


def show_payments(project: Project) -> None:
    """The payments of the customer with the corrected one, and those that arrived more than once."""
    facts = project.table("bronze.payment").where("customer_id = 'C124' OR seen_count > 1").orderBy("payment_id", "effective_from")
    table = Table("payment", "customer", "amount", "booked at", "what", "seen")
    for row in facts.collect():
        what = "[yellow]correction[/]" if row["corrects"] is not None else "fact"
        amount, booked = f"{row['amount']} {row['currency']}", f"{row['effective_from']:%Y-%m-%d %H:%M}"
        table.add_row(row["payment_id"], row["customer_id"], amount, booked, what, f"{row['seen_count']}x")
    CONSOLE.print(table)


def show_refused(project: Project) -> None:
    """One line per refused row."""
    table = Table("file", "reason")
    for row in refused_rows(project.config, None):
        table.add_row(row["source_file"], escape(row["reason"]))
    CONSOLE.print(table)


def show_why(project: Project, day: int) -> None:
    """Why Jane's status was what it was in the evening of a day."""
    question = ask(project.config, "customer", "C123", known_at=EVENINGS[day])
    CONSOLE.print(f"[bold]In the evening of day {day}[/]")
    why_picture(question, {"status": reason(question, "status")}, believed_row(question))


def show_receipts(project: Project) -> None:
    """What changed about the past, one line per value."""
    receipts_picture(restatements(project.config, "customer"))


def show_proof(project: Project) -> None:
    """Counts of evidence, versions and beliefs, each compared with a rebuild."""
    rows = {table.name: table.rows for table in lake_tables(project.config)}
    counts = {
        entity.name: f"{rows[str(entity.assertions)]} arrivals on record, {rows[str(entity.timeline)]} versions"
        for entity in project.config.entities
    }
    counts |= {
        str(belief.table): f"{rows[str(belief.table)]} believed, {rows[str(belief.history)]} periods" for belief in project.config.beliefs
    }
    differing = []
    for name, count in counts.items():
        with CONSOLE.status(f"rebuilding {name} from its evidence"):
            proven = project.verify(name)
        answer = "[green]equal to a rebuild[/]" if proven.equal else "[red]differs from a rebuild[/]"
        CONSOLE.print(f"{name}: {count}; {answer}", highlight=False)
        differing += [] if proven.equal else [name]
    if differing:
        message = f"{', '.join(differing)}: not what the evidence says; `karat verify` shows where"
        raise SystemExit(message)


if __name__ == "__main__":
    main()
