"""What Spark did during a run, from its event log: every query by duration, with its scans, shuffles, sorts and joins.

    12.31 s   3 jobs  bronze.thing   save at NativeMethodAccessorImpl.java:0
                      scan thing_assertions 5,000,000 rows · 2 Exchange · 2 Sort · 1 Window · 1 SortMergeJoin

What a line counts has really run in it: rows of a scan are those of its own tasks, and an operator without any is left out.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bench import Window

_TOLD = ("Exchange", "Sort", "Window", "Join", "Generate", "HashAggregate", "WriteFiles", "MapInPandas", "InMemoryTableScan")
_METRICS = ("number of output rows", "data size", "scan time", "sort time", "spill size", "duration", "time in aggregation build")
_EVENT = "Event"
_RUN = re.compile(r"karat \w+ [\w.]+ \([\w-]+\)(: | - )?")
"""What every query of a stage is called; beyond that, Delta says what it does."""


@dataclass
class Query:
    """One SQL execution, or a job outside of any."""

    began: float
    description: str
    group: str = ""
    ended: float = 0.0
    plan: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 0
    counted: set[int] = field(default_factory=set)
    """The metrics that its stages have added to."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, self.ended - self.began)


@dataclass
class Log:
    """The queries of an event log, the values of their metrics, and when jobs were running."""

    queries: list[Query]
    metrics: Mapping[int, int]
    jobs: list[tuple[float, float]]


def read_log(folder: Path) -> Log:
    """All that the log in the folder tells."""
    queries: dict[int, Query] = {}
    other: list[Query] = []
    metrics: dict[int, int] = {}
    of_stage: dict[int, Query] = {}
    of_job: dict[int, Query] = {}
    starts: dict[int, float] = {}
    spans: list[tuple[float, float]] = []
    for event in _events(folder):
        kind = str(event[_EVENT]).rsplit(".", 1)[-1]
        if kind == "SparkListenerSQLExecutionStart":
            queries[event["executionId"]] = Query(event["time"] / 1000, event["description"], plan=event["sparkPlanInfo"])
        elif kind == "SparkListenerSQLAdaptiveExecutionUpdate" and event["executionId"] in queries:
            queries[event["executionId"]].plan = event["sparkPlanInfo"]
        elif kind == "SparkListenerSQLExecutionEnd" and event["executionId"] in queries:
            queries[event["executionId"]].ended = event["time"] / 1000
        elif kind == "SparkListenerJobStart":
            began, properties = event["Submission Time"] / 1000, event.get("Properties") or {}
            query = queries.get(int(properties.get("spark.sql.execution.id") or -1))
            if query is None:
                query = Query(began, properties.get("callSite.short") or "a job of its own")
                other.append(query)
            query.jobs += 1
            query.group = (properties.get("spark.jobGroup.id") or query.group).rsplit("/", 1)[-1]
            of_stage.update(dict.fromkeys(event["Stage IDs"], query))
            of_job[event["Job ID"]], starts[event["Job ID"]] = query, began
        elif kind == "SparkListenerJobEnd":
            ended = event["Completion Time"] / 1000
            spans.append((starts[event["Job ID"]], ended))
            query = of_job[event["Job ID"]]
            query.ended = max(query.ended, ended) if query in other else query.ended
        elif kind == "SparkListenerStageCompleted":
            _count(event["Stage Info"], of_stage, metrics)
    return Log([*queries.values(), *other], metrics, spans)


def told(log: Log, window: Window, plans: int = 0, most: int = 25) -> Iterator[str]:
    """The queries of a run, longest first, and how much of the run no job was running; of the first `plans` the whole plan."""
    inside = [query for query in log.queries if query.jobs and window.began <= query.began <= window.ended]
    busy = _covered((began, ended) for began, ended in log.jobs if window.began <= began <= window.ended)
    wall = window.ended - window.began
    jobs = sum(query.jobs for query in inside)
    yield f"{window.case}: {wall:.1f} s, of which {wall - busy:.1f} s without a job; {jobs} jobs in {len(inside)} queries"
    for number, query in enumerate(sorted(inside, key=lambda query: -query.seconds)[:most]):
        start = query.began - window.began
        yield f"  {query.seconds:7.2f} s  at {start:6.1f}  {query.jobs:3d} jobs  {query.group}  {_short(_RUN.sub('', query.description))}"
        if does := " · ".join(_operators(query, log.metrics)):
            yield f"      {does}"
        if number < plans:
            yield from _tree(query.plan, query, log.metrics)


def _tree(node: Mapping[str, Any], query: Query, metrics: Mapping[int, int], depth: int = 0) -> Iterator[str]:
    """The operators that ran in a query, each under the one that it feeds, with what they counted."""
    ran = [each for each in node.get("metrics", ()) if each["accumulatorId"] in query.counted]
    if ran:
        told_of = [each for each in ran if each["name"] in _METRICS]
        counts = ", ".join(f"{each['name']} {metrics.get(each['accumulatorId'], 0):,}" for each in told_of)
        text = " ".join(str(node.get("simpleString", "")).split())[:120]
        yield f"        {'  ' * depth}{text}  [{counts}]"
    for child in node.get("children", ()):
        yield from _tree(child, query, metrics, depth + bool(ran))


def _count(stage: Mapping[str, Any], of_stage: Mapping[int, Query], metrics: dict[int, int]) -> None:
    query = of_stage.get(stage["Stage ID"])
    for each in stage.get("Accumulables", ()):
        value = each.get("Value")
        if str(value).lstrip("-").isdigit():
            metrics[each["ID"]] = int(value)
        if query is not None:
            query.counted.add(each["ID"])


def _operators(query: Query, metrics: Mapping[int, int]) -> Iterator[str]:
    """Scans with their rows, then the other operators with how often each has run."""
    scans: list[str] = []
    counts: Counter[str] = Counter()
    rows: defaultdict[str, int] = defaultdict(int)
    for node in _nodes(query.plan):
        ran = [metric for metric in node.get("metrics", ()) if metric["accumulatorId"] in query.counted]
        if not ran:
            continue
        name = str(node["nodeName"]).strip()
        output = next((metrics.get(metric["accumulatorId"], 0) for metric in ran if metric["name"] == "number of output rows"), 0)
        if name.startswith(("Scan", "FileScan", "BatchScan")):
            scans.append(f"scan {_source(node)} {output:,} rows")
        elif any(word in name for word in _TOLD):
            counts[name] += 1
            rows[name] = max(rows[name], output)
    yield from scans
    for name, count in counts.most_common():
        yield f"{count} {name}" + (f" (≤ {rows[name]:,} rows)" if rows[name] else "")


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if plan:
        yield plan
        for child in plan.get("children", ()):
            yield from _nodes(child)


def _source(node: Mapping[str, Any]) -> str:
    """The folder of the table or the files that a scan reads, and how many columns."""
    text = f"{node.get('metadata', {}).get('Location', '')} {node.get('simpleString', '')}"
    found = re.search(r"file:([^\],\s]+)", text)
    columns = len(re.findall(r"#\d+", str(node.get("simpleString", "")).split("]")[0]))
    where = "/".join(found[1].rstrip("/").split("/")[-2:]) if found else str(node["nodeName"]).strip()
    return f"{where} ({columns} columns)"


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """How many seconds lie in at least one of the spans."""
    total, reached = 0.0, 0.0
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return total


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 110 else line[:109] + "…"


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(("appstatus", "."))):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
