"""Which columns an expression speaks of."""

import pytest

from karat.contract.expressions import Expression, json_path, references


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stat", ["stat"]),
        ("upper(stat)", ["stat"]),
        ("UPPER( TRIM(stat) )", ["stat"]),
        ("coalesce(`first name`, 'n/a, x')", ["first name"]),
        ("`we``ird`", ["we`ird"]),
        ('concat(a, " b ", c)', ["a", "c"]),
        (r"replace(a, 'it\'s b', c)", ["a", "c"]),
        ("replace(a, 'it''s b', c)", ["a", "c"]),
        ("cast(amount as decimal(10,2))", ["amount"]),
        ("cast(tags as array<string>)", ["tags"]),
        ("cast(m as map<string, int>) , n", ["m", "n"]),
        ("struct(a as x, b as y)", ["a", "b"]),
        ("amount::decimal(10,2) + tax", ["amount", "tax"]),
        ("case when kind = 'x' then price else null end", ["kind", "price"]),
        ("a is not null and not b or c in (1, 2)", ["a", "b", "c"]),
        ("transform(tags, tag -> upper(tag))", ["tags"]),
        ("aggregate(xs, 0, (acc, x) -> acc + x)", ["xs"]),
        ("filter(items, i -> i.price > limit_)", ["items", "limit_"]),
        ("date '2026-01-01' + interval 1 day", []),
        ("ts + interval '2' hours", ["ts"]),
        ("extract(year from born)", ["born"]),
        ("date", ["date"]),
        ("date_add(date, 1)", ["date"]),
        ("current_date", []),
        ("coalesce(x, current_timestamp)", ["x"]),
        ("'constant'", []),
        ("1.5e3 + a1", ["a1"]),
        ("a -- a remark with words\n+ b", ["a", "b"]),
        ("a /* and one */ + b", ["a", "b"]),
        ("grüße + naïve", ["grüße", "naïve"]),
        ("a % b", ["a", "b"]),
        ("true", []),
    ],
)
def test_columns_are_told_from_everything_else(text: str, names: list[str]) -> None:
    assert [found[-1] for found in references(text)] == names


def test_a_dotted_name_may_be_one_column_or_a_part_of_another() -> None:
    assert references("upper(a.b)") == (("a.b", "a"),)
    assert references("`a.b`") == (("a.b",),)
    assert references("a . `b c`") == (("a.b c", "a"),)


def test_a_dotted_name_that_is_a_column_is_put_in_backticks() -> None:
    assert Expression("map.x", "upper(a.b) || a.c || 'a.b'").quoting({"a.b"}) == "upper(`a.b`) || a.c || 'a.b'"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("stat", ("stat",)),
        ("`my col`", ("my col",)),
        ("a.b", ("a", "b")),
        ("upper(a)", ()),
        ("null", ()),
        ("'x'", ()),
        ("current_date", ()),
    ],
)
def test_a_name_alone_is_a_column(text: str, parts: tuple[str, ...]) -> None:
    assert Expression("x", text).parts == parts


def test_a_field_inside_another_is_told_by_its_names() -> None:
    assert Expression("x", "concat(data.first, `a b`.`c.d`)").paths == (("data", "first"), ("a b", "c.d"))
    assert Expression("x", "transform(items, i -> i.price)").paths == (("items",),)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("$.a", ("a",)),
        ("$.a.b.c", ("a", "b", "c")),
        ("$['a b'].c", ("a b", "c")),
        (" $.a-b ", ("a-b",)),
        ("$", ()),
        ("$.a[0]", ()),
        ("$.a[*].b", ()),
        ("$..a", ()),
        ("$.*", ()),
        ("/a/b", ()),
    ],
)
def test_a_json_path_through_objects_alone_is_told_by_its_names(text: str, names: tuple[str, ...]) -> None:
    assert json_path(text) == names


@pytest.mark.parametrize(
    ("text", "is_no_sql", "may_be_a_name"),
    [
        ("the id", True, False),
        ("as of", True, False),
        ("status", False, False),
        ("not gone", False, False),
        ("a is not null", False, False),
        ("case when a then b end", False, False),
        ("upper(the_id)", False, False),
        ("e-mail", False, True),
        ("a - b", False, False),
        ("a/b", False, True),
    ],
)
def test_what_is_a_column_although_it_could_be_read_as_sql(text: str, *, is_no_sql: bool, may_be_a_name: bool) -> None:
    expression = Expression("x", text)
    assert (expression.is_no_sql, expression.may_be_a_name) == (is_no_sql, may_be_a_name)
