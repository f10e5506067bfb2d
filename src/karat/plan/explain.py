"""A plan as JSON-ready records. They are the stages that a run executes, so the explanation cannot differ from the run."""

from karat.plan.build import Plan


def as_records(plan: Plan) -> list[dict[str, object]]:
    """One record a stage, in the order they run."""
    return [
        {
            "name": stage.name,
            "kind": stage.kind,
            "reads": list(stage.reads),
            "writes": list(stage.writes),
            "since": stage.since,
            "why": stage.why,
            "waits_for": sorted(plan.waits_for[stage.name]),
        }
        for stage in plan.stages
    ]
