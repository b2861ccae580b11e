# SPDX-License-Identifier: Apache-2.0
"""
Nothing is written and then not used: tests are in ctest, fixtures are built and tested, runtimes are in the README.
"""

import json
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["YRT_BUILD"]
HELPERS = {"unit/steps.c", "unit/steps_program.c"}
KINDS = {"unit": r"test_\w+\.c", "fuzz": r"fuzz_\w+\.c", "e2e": r"test_\w+\.py", "check": r"\w+\.py",
         "bench": r"bench_\w+\.(c|py)"}
VERSIONS = "versions"  # tests of other builds of LuaJIT, listed in tests/versions.cmake


def read(*path):
    with open(os.path.join(SOURCE, *path), errors="replace") as f:
        return f.read()


def listed(*path):
    directory = os.path.join(SOURCE, *path)
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def registered():
    """The names that ctest of this build knows; a module of measurements counts as its tests do."""
    names = set()
    for configuration in "Bench", "Measured":
        command = ["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-C", configuration]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        names |= {test["name"].replace("measured.", "e2e.test_") for test in json.loads(out)["tests"]}
    return names


def is_helper(kind, name):
    """A module that another of its folder imports."""
    wanted = re.compile(rf"^(import|from) {name.removesuffix('.py')}\b", re.M)
    return name.endswith(".py") and any(
        wanted.search(read("tests", kind, other)) for other in listed("tests", kind) if other.endswith(".py"))


def tests():
    known = registered()
    with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
        sanitized = re.search(r"^YRT_ASAN:BOOL=(ON|1|TRUE)", f.read(), re.M)
    for kind, pattern in KINDS.items():
        for name in listed("tests", kind):
            path = f"{kind}/{name}"
            if path in HELPERS or not name.endswith((".c", ".py")):
                continue
            if not re.fullmatch(pattern, name):
                if not is_helper(kind, name):
                    yield f"tests/{path}: neither a test by its name ({pattern}) nor imported by one"
            elif kind in (("e2e", "bench", "check") if sanitized else ("fuzz",)):  # of the other tree
                continue
            elif f"{kind}.{name.split('.')[0]}" not in known:
                yield f"tests/{path}: not in ctest"


def cmocka():
    """Each test function of a unit test is in its table."""
    for name in listed("tests", "unit"):
        text = read("tests", "unit", name) if name.endswith(".c") else ""
        for function in re.findall(r"^static void (test_\w+)\(void \*\*\w+\)", text, re.M):
            if len(re.findall(rf"\b{function}\b", text)) < 2:
                yield f"tests/unit/{name}: {function} is not run"


def python_tests():
    for name in listed("tests", "e2e"):
        if name.startswith("test_") and not re.search(r"^(yrt\.)?main\(", read("tests", "e2e", name), re.M):
            yield f"tests/e2e/{name}: does not run its tests"


def fixtures():
    variants = {}
    for line in read("fixtures", "native", "variants.txt").splitlines():
        if line and line[0].islower():
            name, source = line.split()[:2]
            variants[name] = source
    for name in listed("fixtures", "native"):
        if name.endswith((".c", ".cc")) and name not in variants.values():
            yield f"fixtures/native/{name}: not in variants.txt"
    users = "".join(
        read("tests", kind, name)
        for kind in (*KINDS, VERSIONS)
        for name in listed("tests", kind)
        if name.endswith((".c", ".py"))
    ) + "".join(read("fixtures", "native", s) for s in set(variants.values()))
    for name in listed("fixtures", "lua") + listed("fixtures", "lua", "programs"):
        if name.endswith(".lua") and not re.search(rf"\b{name[:-4]}\b", users):
            yield f"fixtures/lua: no test uses {name}"
    for name in variants:
        if not re.search(rf'["/]{re.escape(name)}["/]', users):
            yield f"fixtures/native/variants.txt: no test uses {name}"


def runtimes():
    names = re.findall(r"^RUNTIME\(\w+, (\w+)\)", read("runtimes", "list.h"), re.M)
    readme = read("README.md") if os.path.exists(os.path.join(SOURCE, "README.md")) else ""
    if not names:
        yield "runtimes/list.h: no runtime found"
    for name in names:
        if not re.search(rf"^\|.*{name}.*\|", readme, re.M | re.I):
            yield f"README.md: no row of the support table names {name}"
        if not os.path.exists(os.path.join(SOURCE, "runtimes", name, "README.md")):
            yield f"runtimes/{name}: no README.md"
    for name in listed("runtimes"):
        if os.path.isdir(os.path.join(SOURCE, "runtimes", name)) and name not in (*names, "lua_common"):
            yield f"runtimes/{name}: not in runtimes/list.h"


wrong = [line for part in (tests, cmocka, python_tests, fixtures, runtimes) for line in part()]
print("\n".join(wrong) or "all tests, fixtures and runtimes are registered")
sys.exit(bool(wrong))
