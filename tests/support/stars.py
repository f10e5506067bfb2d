"""Projects with a star, from plain values; a shop of customers, products and orders is the usual one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.sessions import SMALL

Declared = dict[str, Any]

DIM_CUSTOMER: Declared = {
    "kind": "dimension",
    "name": "dim_customer",
    "scd_type": 2,
    "natural_keys": ["customer_id"],
    "surrogate_key": {"column": "customer_sk", "strategy": "hash"},
    "sources": [{"table": "silver.customers", "alias": "c", "mode": "cdf"}],
    "sql": "SELECT customer_id, name, address, updated_at FROM c",
    "track": ["name", "address"],
    "effective_at": "updated_at",
}
DIM_PRODUCT: Declared = {
    "kind": "dimension",
    "name": "dim_product",
    "scd_type": 1,
    "natural_keys": ["product_id"],
    "sources": [{"table": "silver.products", "alias": "p", "mode": "cdf"}],
    "sql": "SELECT product_id, title, price FROM p",
}
DIM_DATE: Declared = {"kind": "dimension", "name": "dim_date", "calendar": {"from": "2026-01-01", "to": "2026-12-31"}}
FACT_SALES: Declared = {
    "kind": "fact",
    "name": "fact_sales",
    "grain": ["order_item_id"],
    "sources": [{"table": "silver.order_items", "alias": "oi", "mode": "cdf"}],
    "sql": "SELECT order_item_id, customer_id, product_id, ordered_at, amount FROM oi",
    "lookups": [
        {"dimension": "dim_customer", "on": {"customer_id": "customer_id"}, "at": "ordered_at", "into": "customer_sk"},
        {"dimension": "dim_product", "on": {"product_id": "product_id"}, "into": "product_sk", "missing": "member"},
        {"dimension": "dim_date", "on": {"date": "date(ordered_at)"}, "into": "ordered_on"},
    ],
}
BRIDGE: Declared = {
    "kind": "bridge",
    "name": "bridge_customer_product",
    "between": {"customer": "dim_customer", "product": "dim_product"},
    "sources": [{"table": "silver.likes", "alias": "l", "mode": "cdf"}],
    "sql": "SELECT customer_id, product_id, share FROM l",
    "weight": "share",
}
SHOP = (DIM_CUSTOMER, DIM_PRODUCT, DIM_DATE, FACT_SALES)


def star_project(folder: Path, declared: Sequence[Mapping[str, Any]], **karat: object) -> Path:
    """A project of these declarations in one file, `gold.yml`."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"project": "star", "lake": "./lake", "spark": SMALL, **karat}
    (folder / "karat.yml").write_text(yaml.safe_dump(chosen), encoding="utf-8")
    (folder / "gold.yml").write_text(yaml.safe_dump_all(map(dict, declared), sort_keys=False), encoding="utf-8")
    return folder
