"""Templates of SQL: what they may do, and that nothing leads out of the sandbox."""

import pytest

from karat.config.template import render, template_problem
from karat.errors import ConfigError

ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ [].__class__.__base__ }}",
    "{{ {}.__class__ }}",
    "{{ ().__class__.__bases__[0].__subclasses__()[59].__init__.__globals__ }}",
    "{{ 1.__class__ }}",
    "{{ var.__class__ }}",
    "{{ var.__init__ }}",
    "{{ var.__dict__ }}",
    "{{ var['__class__'] }}",
    "{{ var['region'] }}",
    "{{ run.__class__ }}",
    "{{ run.environ }}",
    "{{ run.id.__class__ }}",
    "{{ run.id.format(run) }}",
    "{{ this.mro }}",
    "{{ this.name.upper() }}",
    "{{ this.rows.sparkSession }}",
    "{{ self }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ lipsum() }}",
    "{{ namespace(a=1) }}",
    "{{ range(10) }}",
    "{{ dict(a=1) }}",
    "{{ config }}",
    "{{ config.items() }}",
    "{{ request.application.__globals__ }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{{ url_for.__globals__ }}",
    "{{ g.pop }}",
    "{{ 'a'|attr('__class__') }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ var|map(attribute='__class__')|list }}",
    "{{ [var]|selectattr('__class__')|list }}",
    "{{ [var]|groupby('__class__') }}",
    "{{ '%s'|format(var) }}",
    "{{ var|tojson }}",
    "{{ var|pprint }}",
    "{{ var|xmlattr }}",
    "{% import 'os' as os %}{{ os }}",
    "{% from 'os' import path %}",
    "{% include '/etc/passwd' %}",
    "{% extends 'base' %}",
    "{% block a %}{% endblock %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}",
    "{% call m() %}{% endcall %}",
    "{% filter upper %}a{% endfilter %}",
    "{% set x = var %}{{ x.__class__ }}",
    "{% set var = 1 %}",
    "{% for x in [var] %}{{ x.__class__ }}{% endfor %}",
    "{% for x in var %}{{ loop.__class__ }}{% endfor %}",
    "{% if ''.__class__ %}a{% endif %}",
    "{{ 2 ** 99999999 }}",
    "{{ 'a' * 99999999 }}",
    "{{ 'a' ~ ''.join }}",
    "{{ var is callable }}",
    "{{ var|default(var.__class__) }}",
    "{{ a if b else c }}",
]


@pytest.mark.parametrize("template", ESCAPES)
def test_nothing_leads_out_of_the_sandbox(template: str) -> None:
    assert template_problem(f"SELECT 1\n{template}") is not None
    with pytest.raises(ConfigError):
        render(template, {"region": "eu"}, {"name": "t", "rows": "r", "exists": True}, {"id": "r1"})


def test_a_problem_names_its_line() -> None:
    assert template_problem("SELECT 1\nFROM {{ secrets }}") == ("`secrets` is not known in a template", 2)
    assert template_problem("SELECT {% if %}") is not None


@pytest.mark.parametrize(
    ("template", "sql"),
    [
        ("SELECT '{{ var.region }}'", "SELECT 'eu'"),
        ("{% if run.is_first %}a{% else %}b{% endif %}", "a"),
        ("{% if this.exists and var.days > 2 %}{{ this.rows }}{% endif %}", "held"),
        ("{% for name in ['x', 'y'] %}{{ name|upper }}{% if not loop.last %}, {% endif %}{% endfor %}", "X, Y"),
        ("{% set limit = var.days + 1 %}{{ limit }}", "4"),
        ("{{ var.region|default('none') ~ '!' }}", "eu!"),
    ],
)
def test_a_template_knows_its_variables_its_table_and_its_run(template: str, sql: str) -> None:
    assert render(template, {"region": "eu", "days": 3}, {"name": "t", "rows": "held", "exists": True}, {"is_first": True}) == sql


def test_a_variable_without_a_value_is_told() -> None:
    with pytest.raises(ConfigError, match="region") as refused:
        render("{{ var.region }}", {}, {}, {})
    assert "--var" in (refused.value.remedy or "")
