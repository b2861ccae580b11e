# SPDX-License-Identifier: Apache-2.0
"""
Programs that need nothing but Python: python_library.py NAME works with that part of its library until it is killed.
"""

import argparse
import ast
import asyncio
import csv
import decimal
import difflib
import email
import email.policy
import fractions
import html.parser
import io
import json
import logging
import pickle
import random
import re
import sqlite3
import statistics
import string
import sys
import textwrap
import tokenize
import unittest
import xml.dom.minidom
import xml.etree.ElementTree
import zlib

with open(argparse.__file__) as file:
    SOURCE = file.read()
DATA = [{"name": f"n{i}", "values": [i, i / 3, None], "next": {"text": "é" * (i % 5)}} for i in range(200)]


def parse():
    ast.unparse(ast.parse(SOURCE))


def tokens():
    list(tokenize.generate_tokens(io.StringIO(SOURCE).readline))


def documents():
    root = xml.etree.ElementTree.fromstring("<r>" + "".join(f"<a k='{i}'>text<b/></a>" for i in range(300)) + "</r>")
    sorted(root.iter("a"), key=lambda a: int(a.get("k")) % 7)
    xml.dom.minidom.parseString(xml.etree.ElementTree.tostring(root)).toprettyxml()


def texts():
    json.loads(json.dumps(DATA, indent=1, cls=type("E", (json.JSONEncoder,), {})))
    re.sub(r"(\w+)_(\w+)", lambda m: m[2].upper() + m[1], SOURCE)
    textwrap.fill(SOURCE[:5000])
    string.Template("$a of ${b}").substitute(a=1, b=2)


def differences():
    a, b = SOURCE.splitlines()[:150], SOURCE.splitlines()[20:170]
    list(difflib.unified_diff(a, b))
    difflib.get_close_matches("argument", SOURCE.split()[:500])


def numbers():
    decimal.getcontext().prec = 200
    sum((decimal.Decimal(1) / i for i in range(1, 200)), decimal.Decimal(0)).sqrt().ln()
    sum(fractions.Fraction(1, i) for i in range(1, 60))
    statistics.stdev(random.gauss(0, 1) for _ in range(500))


def database(db=sqlite3.connect(":memory:")):
    db.create_function("twice", 1, lambda x: x * 2)
    db.executescript("drop table if exists t; create table t(a, b)")
    db.executemany("insert into t values(?, ?)", ((i, str(i * 7919 % 1013)) for i in range(2000)))
    db.execute("select b, sum(twice(a)) from t group by b order by 2 desc").fetchall()


def objects():
    pickle.loads(pickle.dumps(DATA))
    zlib.decompress(zlib.compress(SOURCE.encode(), 6))
    list(csv.DictReader(io.StringIO("a,b\n" + "1,\"x, y\"\n" * 500)))


def mails():
    text = (
        "From: a@b\nTo: c@d\nSubject: =?utf-8?q?x=C3=A9?=\nContent-Type: multipart/mixed;"
        " boundary=B\n\n--B\n\nhello\n--B\n\nworld\n--B--\n"
    )
    for _ in range(20):
        message = email.message_from_string(text, policy=email.policy.default)
        [part.get_content() for part in message.walk() if not part.is_multipart()]
        str(message["to"].addresses)


class Pages(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        self.found = dict(attrs).get("href")


def pages():
    Pages().feed("<p class=x>text <a href='/1'>a &amp; b</a><br></p>" * 200)


def tests():
    class T(unittest.TestCase):
        def test_equal(self):
            self.assertEqual({"a": [1, 2]}, {"a": [1, 2]})

        def test_raises(self):
            with self.assertRaises(ZeroDivisionError), self.subTest(i=1):
                1 / 0
    unittest.TextTestRunner(io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
    logger = logging.getLogger("x")
    logger.handlers[:] = [logging.StreamHandler(io.StringIO())]
    logger.warning("a %s of %d", "b", 3)


async def produce(queue):
    for i in range(50):
        await queue.put(i)
        await asyncio.sleep(0)


async def consume(queue):
    return sum([await asyncio.wait_for(queue.get(), 5) for _ in range(50)])


async def both():
    queue = asyncio.Queue(5)
    await asyncio.gather(produce(queue), consume(queue))


def tasks():
    asyncio.run(both())


while True:
    globals()[sys.argv[1]]()
