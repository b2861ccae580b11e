# SPDX-License-Identifier: Apache-2.0
"""Jinja2: compiles and renders templates with inheritance, macros, filters."""
import jinja2

loader = jinja2.DictLoader({
    "base": "<html>{% block body %}{% endblock %}</html>",
    "page": "{% extends 'base' %}{% macro row(x) %}<td>{{ x.name|title }}</td>{% endmacro %}"
            "{% block body %}{% for x in rows if x.ok %}{{ row(x) }}{{ loop.index }}{% endfor %}{% endblock %}"})
rows = [{"name": f"name {i}", "ok": i % 3} for i in range(100)]
while True:
    environment = jinja2.Environment(loader=loader, autoescape=True)
    for _ in range(5):
        environment.get_template("page").render(rows=rows)
