# SPDX-License-Identifier: Apache-2.0
"""Other people's readers of the formats that yrt writes. Each gives back stacks [(frames from the root, count)]."""

import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import tarfile
from xml.etree import ElementTree

SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("YRT_BUILD") or os.path.join(SOURCE, "build", "release")
SPEEDSCOPE = "1.25.0"


def tool(name):
    path = shutil.which(name)
    assert path, f"{name} is missing: sh fixtures/setup.sh test installs it"
    return path


def run(*command, **kw):
    done = subprocess.run(command, capture_output=True, **kw)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode(errors='replace')[-2000:]}"
    return done.stdout.decode(errors="strict")


def merge(stacks):
    """Equal stacks added up, those of nothing left out."""
    total = collections.Counter()
    for frames, count in stacks:
        total[tuple(frames)] += count
    return +total


def protobuf_text(text):
    """The text format of protocol buffers: a message is {field: [values]}."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
            continue
        name, opens, value = re.fullmatch(r"(\w+)(?:( \{)|: (.*))", line).groups()
        assert not name.isdigit(), f"a field that the format does not have, or of another type: {line}"
        if opens:
            stack[-1][name].append(collections.defaultdict(list))
            stack.append(stack[-1][name][-1])
        elif value.startswith('"'):
            raw = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), value[1:-1])
            raw = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), raw)
            stack[-1][name].append(raw.encode("latin-1").decode(errors="surrogateescape"))  # of bytes
        else:
            stack[-1][name].append({"true": 1, "false": 0}.get(value) if value.isalpha() else int(value))
    assert len(stack) == 1
    return stack[0]


class Pprof:
    """What protoc reads."""

    def __init__(self, path):
        with gzip.open(path) as f:
            raw = f.read()
        here = os.path.join(SOURCE, "tests", "tools")
        self.profile = protobuf_text(run(tool("protoc"), f"--proto_path={here}", "--decode=Profile", "profile.proto",
                                         input=raw, cwd=here))
        self.strings = self.profile["string_table"]
        assert self.strings[0] == "", "the first string is not empty"
        self.functions = self.by_id("function")
        self.locations = self.by_id("location")
        self.mappings = self.by_id("mapping")

    def by_id(self, field):
        items = self.profile[field]
        found = {item["id"][0]: item for item in items}
        assert len(found) == len(items), f"two of {field} with one id"
        return found

    def one(self, message, field):
        """A number, 0 if it is not there."""
        return (message[field] or [0])[0]

    def text(self, message, field):
        return self.strings[self.one(message, field)]

    def types(self):
        return [(self.text(t, "type"), self.text(t, "unit")) for t in self.profile["sample_type"]]

    def period(self):
        """What one stands for: (type, unit, number)."""
        (of,) = self.profile["period_type"]
        return self.text(of, "type"), self.text(of, "unit"), self.profile["period"][0]

    def frames(self, sample):
        """From the root; of a location the last line is the outermost function."""
        lines = [line for at in sample["location_id"] for line in self.locations[at]["line"]]
        return [self.text(self.functions[line["function_id"][0]], "name") for line in reversed(lines)]

    def labels(self, sample):
        return {self.text(label, "key"): self.text(label, "str") or self.one(label, "num") for label in sample["label"]}

    def stacks(self, value=0):
        return [(self.frames(s), s["value"][value]) for s in self.profile["sample"]]

    def comments(self):
        return [self.strings[c] for c in self.profile["comment"]]

    def check(self):
        """What a reader relies on."""
        values = len(self.profile["sample_type"])
        assert all(len(s["value"]) == values for s in self.profile["sample"])
        for location in self.locations.values():
            assert self.one(location, "mapping_id") in (0, *self.mappings), location
            assert location["line"], location


def blank(message):
    """Whether it has no field but empty messages, as others than yrt write them."""
    return all(isinstance(item, dict) and blank(item) for items in message.values() for item in items)


class Otlp:
    """What protoc reads of OTLP profiles."""

    def __init__(self, raw):
        here = os.path.join(SOURCE, "tests", "tools")
        request = protobuf_text(
            run(tool("protoc"), f"--proto_path={here}", "--decode=Request", "otlp.proto", input=raw, cwd=here)
        )
        (self.resources,), (self.tables,) = request["resources"], request["dictionary"]
        self.strings = self.tables["strings"]
        self.profiles = self.resources["scopes"][0]["profiles"]
        for name in "mappings", "locations", "functions", "links", "attributes", "stacks":
            assert self.tables[name] and blank(self.tables[name][0]), f"element 0 of {name} is not empty"
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)

    @staticmethod
    def one(message, field):
        return (message[field] or [0])[0]

    def value(self, any_value):
        if any_value["string_index"]:
            return self.strings[any_value["string_index"][0]]
        return any_value["string"][0] if any_value["string"] else self.one(any_value, "int")

    def attributes(self, message):
        found = [self.tables["attributes"][i] for i in message["attributes"]]
        return {self.strings[self.one(a, "key")]: self.value(a["value"][0]) for a in found}

    def resource(self):
        return {
            a["key"][0] if a["key"] else self.strings[a["key_index"][0]]: self.value(a["value"][0])
            for a in self.resources["resource"][0]["attributes"]
        }

    def type(self, profile):
        what = profile["sample_type"][0]
        return self.strings[self.one(what, "type")], self.strings[self.one(what, "unit")]

    def period(self, profile):
        (of,) = profile["period_type"]
        return self.strings[self.one(of, "type")], self.strings[self.one(of, "unit")], self.one(profile, "period")

    def frames(self, sample):
        stack = self.tables["stacks"][self.one(sample, "stack")]
        lines = [line for at in stack["locations"] for line in self.tables["locations"][at]["lines"]]
        functions = [self.tables["functions"][line["function"][0]] for line in reversed(lines)]
        return [self.strings[self.one(f, "name")] for f in functions]

    def frame_types(self):
        return {self.attributes(at).get("profile.frame.type") for at in self.tables["locations"][1:]}

    def build_ids(self):
        return {
            self.strings[self.one(m, "file")]: self.attributes(m).get("process.executable.build_id.gnu")
            for m in self.tables["mappings"][1:]
        }

    def stacks(self, profile=0):
        return [(self.frames(s), s["values"][0]) for s in self.profiles[profile]["samples"]]


def pprof_top(path, index):
    """{function: (flat, cumulative)} by go tool pprof."""
    out = run(
        tool("go"),
        "tool",
        "pprof",
        "-top",
        "-nodecount=1000000",
        "-nodefraction=0",
        "-edgefraction=0",
        "-unit=raw",
        f"-sample_index={index}",
        path,
    )
    found = {}
    for line in out.splitlines():
        match = re.fullmatch(r"\s*(-?\d+)\w*\s+\S+%\s+\S+%\s+(-?\d+)\w*\s+\S+%\s+(.*)", line)
        if match:
            name = re.sub(r" \((inline|partial-inline)\)$", "", match[3])
            flat, cumulative = found.get(name, (0, 0))
            found[name] = flat + int(match[1]), cumulative + int(match[2])
    assert found, out
    return found


def speedscope_schema():
    """file-format-schema.json of the npm package, fetched once into the build's folder."""
    path = os.path.join(BUILD, "oracles", f"speedscope-{SPEEDSCOPE}.json")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        name = run(tool("npm"), "pack", "--silent", f"speedscope@{SPEEDSCOPE}", cwd=os.path.dirname(path)).split()[-1]
        archive = os.path.join(os.path.dirname(path), name)
        with tarfile.open(archive) as tar:
            content = tar.extractfile("package/dist/release/file-format-schema.json").read()
        with open(path + ".new", "wb") as f:
            f.write(content)
        os.replace(path + ".new", path)
        os.remove(archive)
    return path


class Speedscope:
    """What the schema permits."""

    def __init__(self, path):
        run(tool("jsonschema"), "-i", path, speedscope_schema())
        with open(path, encoding="utf-8") as f:
            self.file = json.load(f)
        self.names = [frame["name"] for frame in self.file["shared"]["frames"]]
        for profile in self.file["profiles"]:
            assert len(profile["samples"]) == len(profile["weights"])
            assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]

    def stacks(self):
        return [([self.names[f] for f in frames], weight) for profile in self.file["profiles"]
                for frames, weight in zip(profile["samples"], profile["weights"])]


def svg_titles(path):
    """The tooltips of a picture that is well-formed and has nothing that acts or loads."""
    run(tool("xmllint"), "--noout", "--nonet", path)
    titles = []
    for element in ElementTree.parse(path).iter():
        kind = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
        assert kind in ("svg", "style", "rect", "text", "g", "title"), f"a static picture has no {kind}"
        acts = [a for a in element.attrib if a not in ("width", "height", "viewBox", "x", "y", "fill", "class")]
        assert not acts and not (kind == "style" and re.search(r"url|@", element.text)), f"{kind} has {acts}"
        if kind == "title":
            titles.append(element.text.split("\n"))
    return titles
