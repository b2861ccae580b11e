# SPDX-License-Identifier: Apache-2.0
"""Pygments, regex and orjson: a lexer in Python, one in C, one in Rust."""
import argparse

import orjson
import pygments
import regex
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

with open(argparse.__file__) as file:
    source = file.read()[:20000]
word = regex.compile(r"(?P<w>\p{L}+)(?:\s+(?&w)){1,3}")
while True:
    html = pygments.highlight(source, PythonLexer(), HtmlFormatter())
    found = [m.group() for m in word.finditer(source)]
    orjson.loads(orjson.dumps({"html": html, "found": found}))
