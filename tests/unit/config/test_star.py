"""`kind: dimension`, `fact` and `bridge`: what is refused, with place and remedy, and what is filled in."""

from pathlib import Path
from typing import Any

import pytest

from karat.config.load import load
from karat.config.problems import ConfigProblems
from karat.config.star import Dimension, Fact
from karat.plan.build import build_plan
from tests.support.stars import BRIDGE, DIM_CUSTOMER, DIM_DATE, DIM_PRODUCT, FACT_SALES, SHOP, Declared, star_project

LOOKUP = FACT_SALES["lookups"][0]
UNREAD = {"table": "silver.x", "alias": "x"}


def problems(folder: Path, *declared: Declared) -> list[str]:
    with pytest.raises(ConfigProblems) as refused:
        load(star_project(folder, declared))
    return [str(problem) for problem in refused.value.problems]


def fact(**more: Any) -> Declared:  # noqa: ANN401  (whatever a declaration holds)
    return {**FACT_SALES, "lookups": [LOOKUP], **more}


def lookup(**more: Any) -> Declared:  # noqa: ANN401
    return fact(lookups=[{**LOOKUP, **more}])


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({**DIM_CUSTOMER, "natural_keys": []}, "add natural_keys: [customer_id]"),
        ({**DIM_CUSTOMER, "natural_keys": ["customer"]}, "gold.yml:4 natural_keys: the query does not return the column customer"),
        ({**DIM_CUSTOMER, "track": ["adress"]}, "did you mean address?"),
        ({**DIM_CUSTOMER, "sql": "SELECT customer_id FROM customers"}, "the query reads customers, which is no alias of a source"),
        ({**DIM_CUSTOMER, "sql": "SELECT customer_id, FROM c WHERE"}, "the SQL does not parse"),
        ({**DIM_CUSTOMER, "sql": "DELETE FROM c"}, "write one SELECT"),
        ({**DIM_CUSTOMER, "sql": "SELECT {{ secret }} FROM c"}, "`secret` is not known in a template"),
        ({**DIM_CUSTOMER, "sql": "SELECT {{ var.rgn }} AS customer_id FROM c"}, "--var name=value"),
        ({**DIM_CUSTOMER, "sql_file": "a.sql"}, "there are two queries"),
        ({**{k: v for k, v in DIM_CUSTOMER.items() if k != "sql"}, "sql_file": "sql/none.sql"}, "there is no such file"),
        ({**{k: v for k, v in DIM_CUSTOMER.items() if k != "sql"}, "sql_file": "../a.sql"}, "the path leads out of the project"),
        ({**DIM_CUSTOMER, "absence_means": "deleted"}, "absence_means: deleted needs `full` sources"),
        ({**DIM_CUSTOMER, "periods": {"from": "a", "to": "b"}}, "use scd_type: 2 without effective_at"),
        ({**DIM_CUSTOMER, "sources": []}, "add sources"),
        (
            {**DIM_CUSTOMER, "sources": [*DIM_CUSTOMER["sources"], UNREAD]},
            "the query does not read the source x",
        ),
        ({**DIM_CUSTOMER, "sources": [*DIM_CUSTOMER["sources"]] * 2}, "two sources have one alias"),
        ({**DIM_CUSTOMER, "sources": [{"table": "a.b.c.d", "alias": "c"}]}, "write schema.table"),
        ({**DIM_CUSTOMER, "surrogate_key": {"column": "sk", "strategy": "uuid"}}, "surrogate_key.strategy"),
        ({**DIM_CUSTOMER, "cluster_by": ["a"], "partition_by": ["b"]}, "keep `cluster_by` alone"),
        ({**DIM_DATE, "sql": "SELECT 1"}, "a calendar is generated"),
        ({**DIM_DATE, "calendar": {"from": "2026-12-31", "to": "2026-01-01"}}, "the calendar ends before it begins"),
        ({**DIM_DATE, "calendar": {"from": "some day", "to": "2026-01-01"}}, "not a day"),
    ],
)
def test_a_dimension_that_cannot_be_is_refused(tmp_path: Path, declared: Declared, says: str) -> None:
    assert any(says in problem for problem in problems(tmp_path, declared)), problems(tmp_path, declared)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (fact(grain=["order"]), "the query does not return the column order"),
        (fact(grain=[]), "grain"),
        (lookup(dimension="dim_custmer"), "did you mean dim_customer?"),
        (lookup(on={"name": "customer_id"}), "a skeleton needs the whole natural key of dim_customer (customer_id)"),
        (lookup(missing="guess"), "lookups[0].missing"),
        (fact(lookups=[LOOKUP, LOOKUP]), "two lookups fill one column"),
        (fact(load="accumulating"), "name its milestones"),
        (fact(milestones=["shipped_at"]), "milestones belong to an accumulating fact"),
        (fact(load="periodic"), "name its period column"),
        (fact(load="periodic", period="month"), "add the period's column to the grain"),
        (fact(load="periodic", period="order_item_id"), "use mode: full"),
        ({**BRIDGE, "between": {"customer": "dim_customer"}}, "between"),
        ({**BRIDGE, "between": {"customer": "dim_customer", "product": "dim_prod"}}, "did you mean dim_product?"),
    ],
)
def test_a_fact_or_bridge_that_cannot_be_is_refused(tmp_path: Path, declared: Declared, says: str) -> None:
    found = problems(tmp_path, DIM_CUSTOMER, DIM_PRODUCT, declared)
    assert any(says in problem for problem in found), found


def test_a_circle_of_targets_is_shown(tmp_path: Path) -> None:
    first = {**DIM_PRODUCT, "sources": [{"table": "gold.dim_other", "alias": "p"}]}
    second = {**DIM_PRODUCT, "name": "dim_other", "sources": [{"table": "gold.dim_product", "alias": "p"}]}
    (found,) = problems(tmp_path, first, second)
    assert "gold.dim_product ← gold.dim_other ← gold.dim_product" in found or "gold.dim_other ← gold.dim_product ← gold.dim_other" in found


def test_what_is_left_out_is_filled_in(tmp_path: Path) -> None:
    config = load(star_project(tmp_path, [{**DIM_PRODUCT, "sources": [{"table": "products", "alias": "p"}]}, fact(), DIM_CUSTOMER]))
    product, customer, sales = config.star
    assert isinstance(product, Dimension)
    assert isinstance(sales, Fact)
    assert (product.surrogate, product.strategy, str(product.sources[0].table), product.sources[0].is_feed) == (
        "product_sk",
        "hash",
        "silver.products",
        False,
    )
    assert sales.lookups[0].dimension is customer
    assert (sales.lookups[0].missing, sales.lookups[0].when_null) == ("skeleton", -1)


def test_facts_wait_for_their_dimensions(tmp_path: Path) -> None:
    plan = build_plan(load(star_project(tmp_path, reversed(SHOP))), {})
    assert [stage.name for stage in plan.stages][-1] == "gold.fact_sales"
    assert plan.waits_for["gold.fact_sales"] == {"gold.dim_customer", "gold.dim_product", "gold.dim_date"}
    told = {stage.name: stage.why for stage in plan.stages}
    assert told["gold.fact_sales"] == "first load: all of its sources is read: silver.order_items (changes)"
    since = build_plan(load(tmp_path), {"gold.fact_sales": "silver.order_items version 3"})
    assert "silver.order_items version 3" in next(stage.why for stage in since.stages if stage.name == "gold.fact_sales")
