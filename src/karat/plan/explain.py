"""A plan as records for machines; the same stages a run walks, so an explanation cannot differ from the act."""

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
