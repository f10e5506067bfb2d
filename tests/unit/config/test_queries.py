"""Queries looked at without Spark: which changed rows can be followed to the result, and what is carried with them."""

import pytest

from karat.config.query import SqlProblem, changes_query, is_row_by_row, output_columns, parsed, tables_read

ROW_BY_ROW = [
    ("SELECT id, a FROM c", "c"),
    ("SELECT * FROM c WHERE a > 1", "c"),
    ("SELECT c.*, x.b FROM c LEFT JOIN x ON c.id = x.id", "c"),
    ("SELECT c.id FROM x RIGHT JOIN c ON c.id = x.id", "c"),
    ("SELECT c.id FROM x CROSS JOIN c", "c"),
    ("SELECT c.id FROM c LEFT SEMI JOIN x ON c.id = x.id", "c"),
    ("WITH t AS (SELECT * FROM c) SELECT * FROM t", "c"),
    ("WITH t AS (SELECT id FROM c), u AS (SELECT id FROM t) SELECT u.id FROM u JOIN x ON u.id = x.id", "c"),
    ("SELECT id FROM (SELECT id FROM c) q", "c"),
    ("SELECT id FROM c UNION ALL SELECT id FROM d", "d"),
    ("SELECT id, explode(items) AS item FROM c", "c"),
    ("SELECT c.id, (SELECT max(v) FROM d) AS v FROM c", "c"),
    ("SELECT id FROM C", "c"),
]
NOT_ROW_BY_ROW = [
    ("SELECT id, sum(a) AS a FROM c GROUP BY id", "c"),
    ("SELECT max(a) AS a FROM c", "c"),
    ("SELECT DISTINCT id FROM c", "c"),
    ("SELECT id, row_number() OVER (PARTITION BY id ORDER BY a) AS n FROM c", "c"),
    ("SELECT id FROM c LIMIT 1", "c"),
    ("SELECT x.id FROM x LEFT JOIN c ON c.id = x.id", "c"),
    ("SELECT c.id FROM c FULL OUTER JOIN x ON c.id = x.id", "c"),
    ("SELECT c.id FROM c RIGHT JOIN x ON c.id = x.id", "c"),
    ("SELECT x.id FROM x LEFT ANTI JOIN c ON c.id = x.id", "c"),
    ("SELECT id FROM d WHERE id IN (SELECT id FROM c)", "c"),
    ("SELECT id FROM c UNION SELECT id FROM d", "c"),
    ("SELECT a.id FROM c a JOIN c b ON a.id = b.id", "c"),
    ("SELECT id FROM (SELECT id, count(*) AS n FROM c GROUP BY id) q", "c"),
]


@pytest.mark.parametrize(("sql", "alias"), ROW_BY_ROW)
def test_changed_rows_can_be_followed(sql: str, alias: str) -> None:
    assert is_row_by_row(parsed(sql), alias)
    carried = parsed(changes_query(parsed(sql), alias))
    assert "__karat_change_type" in changes_query(parsed(sql), alias)
    assert alias in tables_read(carried)


@pytest.mark.parametrize(("sql", "alias"), NOT_ROW_BY_ROW)
def test_changed_rows_cannot_be_followed(sql: str, alias: str) -> None:
    assert not is_row_by_row(parsed(sql), alias)


def test_change_columns_are_carried_beside_the_querys_own() -> None:
    assert changes_query(parsed("SELECT id FROM c"), "c") == (
        "SELECT id, c._change_type AS __karat_change_type, c._commit_version AS __karat_commit_version, "
        "c._commit_timestamp AS __karat_commit_timestamp FROM c"
    )


def test_branches_that_do_not_read_the_changed_source_are_left_out() -> None:
    assert tables_read(parsed(changes_query(parsed("SELECT id FROM c UNION ALL SELECT id FROM d"), "d"))) == {"d"}


def test_columns_and_tables_are_told() -> None:
    query = parsed("WITH t AS (SELECT * FROM c) SELECT t.id, upper(name) AS name FROM t JOIN silver.x ON t.id = x.id")
    assert output_columns(query) == ("id", "name")
    assert tables_read(query) == {"c", "silver.x"}
    assert output_columns(parsed("SELECT * FROM c")) is None


@pytest.mark.parametrize("sql", ["SELECT FROM", "INSERT INTO x SELECT 1", "SELECT 1; SELECT 2", "DROP TABLE x", "SELECT 'a", ""])
def test_anything_but_one_query_is_refused(sql: str) -> None:
    with pytest.raises(SqlProblem):
        parsed(sql)
