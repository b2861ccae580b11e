# SPDX-License-Identifier: Apache-2.0
"""
yrt symbolize against llvm-symbolizer and addr2line, on programs of several compilers and forms of debug information.

Where those two agree on an address, yrt must say the same. Where they do not, yrt's frames and lines are
llvm-symbolizer's, and another name of the outermost function has one of the reasons that docs/symbolize.md explains;
the test counts them.
"""

import bisect
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import tempfile

import yrt

NATIVE = os.path.join(yrt.SOURCE, "fixtures", "native")
ADDRESSES = 1500
RUST = """
use std::collections::HashMap;
trait Area { fn area(&self) -> f64; }
struct Square(f64);
impl Area for Square { #[inline] fn area(&self) -> f64 { self.0 * self.0 } }
fn main() {
    let mut sums: HashMap<String, Vec<f64>> = HashMap::new();
    for i in 0..1000 { sums.entry(format!("k{}", i % 7)).or_default().push(Square(i as f64).area()); }
    let mut list: Vec<_> = sums.iter().map(|(k, v)| (k.clone(), v.iter().sum::<f64>())).collect();
    list.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap());
    println!("{:?}", list);
}
"""
GO = """
package main
import ("fmt"; "sort"; "strings")
func square(x int) int { return x * x }
func main() {
	sums := map[string]int{}
	for i := 0; i < 1000; i++ { sums[strings.Repeat("k", i%7)] += square(i) }
	var keys []string
	for k := range sums { keys = append(keys, k) }
	sort.Strings(keys)
	fmt.Println(keys, sums)
}
"""


def tool(*names):
    for name in names:
        if shutil.which(name):
            return shutil.which(name)
    raise AssertionError(f"none of {names} is here: see fixtures/setup.sh")


LLVM = tool("llvm-symbolizer", "llvm-symbolizer-14")


def text(*command, stdin=""):
    return subprocess.run([str(c) for c in command], input=stdin, capture_output=True, text=True, check=True).stdout


class Symbols:
    """What nm knows of a file: the names that cover an address, or start there without a size."""

    def __init__(self, *paths):
        self.entries = set()
        for path in paths:
            for flags in (["-S"], ["-S", "-D"]):
                listed = subprocess.run(["nm", *flags, path], capture_output=True, text=True).stdout
                for line in listed.splitlines():
                    words = line.split()
                    if len(words) == 4 and words[2] in "tTwWiuV":
                        self.entries.add((int(words[0], 16), int(words[1], 16), re.sub("@.*", "", words[3])))
        self.entries = sorted(self.entries)
        self.starts = [e[0] for e in self.entries]

    def covering(self, addr):
        found, at = set(), bisect.bisect_right(self.starts, addr)
        for start, size, name in reversed(self.entries[max(0, at - 400):at]):
            if start <= addr < start + size:
                found.add(name)
        return found


def code(path):
    """The address ranges of executable sections."""
    ranges = []
    for line in text("readelf", "-SW", path).splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\S+)", line)
        if m and "A" in m[3] and "X" in m[3]:
            ranges.append((int(m[1], 16), int(m[2], 16)))
    return ranges


def choose(path):
    ranges = code(path)
    total = sum(size for _, size in ranges)
    rng, chosen = random.Random(1), set()
    while len(chosen) < min(ADDRESSES, total // 2):
        at = rng.randrange(total)
        for start, size in ranges:
            if at < size:
                chosen.add(start + at)
                break
            at -= size
    chosen = list(chosen)
    rng.shuffle(chosen)
    return chosen


def pairs(block):
    return list(zip(block[::2], block[1::2]))


def ask_llvm(command, addrs):
    """For each address its frames, innermost first: (function, file, line, column)."""
    out = text(*command, stdin="".join(f"0x{a:x}\n" for a in addrs))
    blocks = [b.split("\n") for b in out.split("\n\n")]
    assert blocks.pop() == [""] and len(blocks) == len(addrs), (len(blocks), len(addrs), command)
    return [[(f, *place.rsplit(":", 2)) for f, place in pairs(b)] for b in blocks]


def ask_addr2line(path, addrs):
    out = text("addr2line", "-a", "-i", "-f", "-e", path, stdin="".join(f"0x{a:x}\n" for a in addrs))
    blocks = re.split(r"^0x[0-9a-f]{16}\n", out, flags=re.M)[1:]
    assert len(blocks) == len(addrs), (len(blocks), len(addrs))
    result = []
    for block in blocks:
        frames = []
        for function, place in pairs(block.rstrip("\n").split("\n")):
            name, line = re.sub(r" \(discriminator \d+\)$", "", place).rsplit(":", 1)
            frames.append((re.sub("@@.*", "", function), name, "0" if line == "?" else line))
        result.append(frames)
    return result


def without_column(frames):
    return [(f, os.path.normpath(name), line) for f, name, line, _ in frames]


def same_place(a, b):
    """addr2line shortens paths in another way."""
    return [(f, os.path.basename(n), line) for f, n, line in a] == [(f, os.path.basename(n), line) for f, n, line in b]


def reason(addr, mine, theirs, symbols):
    """Why yrt says something else than llvm-symbolizer; None: for no known reason."""
    (name, *place), (other, *other_place) = mine[-1], theirs[-1]
    if len(mine) != len(theirs) or mine[:-1] != theirs[:-1]:
        return None
    if name.endswith("@plt"):
        return "stub"
    if place != other_place:
        return None
    covering = symbols.covering(addr)
    if name in covering:
        return "alias" if other in covering else "nearer symbol"
    return "no symbol here" if name == "??" and other not in covering else None


def compare(path, *debug, exact=False):
    addrs = choose(path)
    mine = ask_llvm([yrt.YRT, "symbolize", "--no-demangle", "-e", path], addrs)
    theirs = ask_llvm([LLVM, "--no-demangle", f"--obj={path}"], addrs)
    also = ask_addr2line(path, addrs)
    symbols, counts, wrong = Symbols(path, *debug), collections.Counter(), []
    for addr, a, b, c in zip(addrs, mine, theirs, also):
        agreed = same_place(without_column(b), c)
        counts["inlined"] += len(a) > 1
        if a == b:
            counts["same"] += 1
            counts["same as both"] += agreed
            continue
        why = None if agreed else reason(addr, a, b, symbols)
        counts[why or "wrong"] += 1
        if not why:
            wrong.append((hex(addr), a, b, c))
    print(f"     {os.path.basename(path)}: {dict(counts)}")
    assert not wrong, f"{len(wrong)} of {len(addrs)}; yrt, llvm-symbolizer, addr2line:\n" + "\n".join(
        map(str, wrong[:5])
    )
    return counts


def build(directory, name, *command):
    path = os.path.join(directory, name)
    subprocess.run([*command, "-o", path], check=True, capture_output=True, text=True)
    return path


def native(directory, name, compiler, *flags, source=None):
    source = source or ("inlines.cc" if compiler.endswith("++") else "inlines.c")
    return build(directory, name, tool(compiler), "-O2", "-g", *flags, os.path.join(NATIVE, source))


@yrt.measured
def test_forms_of_debug_information():
    with tempfile.TemporaryDirectory() as d:
        for version in ("-gdwarf-4", "-gdwarf-5", "-gdwarf-2"):
            assert compare(native(d, "c" + version, "gcc", version))["inlined"] > 50
            assert compare(native(d, "cc" + version, "g++", version))["inlined"] > 500
        for version in ("-gdwarf-4", "-gdwarf-5"):
            assert compare(native(d, "clang++" + version, "clang++", version))["inlined"] > 500
        compare(native(d, "O0", "g++", "-O0"))
        compare(native(d, "O3", "g++", "-O3"))
        compare(native(d, "lto", "g++", "-flto"))
        compare(native(d, "dwarf64", "gcc", "-gdwarf64"))
        compare(native(d, "types", "g++", "-fdebug-types-section"))
        compare(native(d, "sections", "g++", "-ffunction-sections", "-Wl,--gc-sections"))
        compare(native(d, "compressed", "g++", "-gz"))


def test_languages_with_a_compiler_here():
    with tempfile.TemporaryDirectory() as d:
        if shutil.which("rustc"):
            with open(os.path.join(d, "r.rs"), "w") as f:
                f.write(RUST)
            for setting in ("codegen-units=1", "symbol-mangling-version=v0"):
                compare(build(d, "rust_" + setting, "rustc", "-O", "-g", "-C", setting, os.path.join(d, "r.rs")))
        else:
            print("     no rustc here: Rust is not compared")
        if shutil.which("go"):
            with open(os.path.join(d, "m.go"), "w") as f:
                f.write(GO)
            compare(go_build(d))
        else:
            print("     no go here: Go is not compared")


def go_build(directory):
    path = os.path.join(directory, "go_program")
    subprocess.run(["go", "build", "-o", path, os.path.join(directory, "m.go")], check=True, capture_output=True,
                   env=dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off"))
    return path


def test_libc_with_its_debug_file():
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    build_id = re.search("Build ID: ([0-9a-f]+)", text("readelf", "-n", libc))[1]
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    assert os.path.exists(debug), "libc6-dbg is not here: see fixtures/setup.sh"
    assert compare(libc, debug)["inlined"] > 100


@yrt.measured
def test_libjvm_where_its_debug_file_is():
    """openjdk-17-dbg in the version of the JVM that is installed; a JVM without it is said."""
    for library in glob.glob("/usr/lib/jvm/*/lib/server/libjvm.so"):
        build_id = re.search("Build ID: ([0-9a-f]+)", text("readelf", "-n", library))
        debug = build_id and f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug"
        if debug and os.path.exists(debug):
            assert compare(debug)["inlined"] > 500
        else:
            print(f"     no debug file of {library} here: not compared")


def split(directory, path, name, strip="--strip-debug"):
    """The program without debug information, and its debug file beside it."""
    debug, bare = os.path.join(directory, name + ".debug"), os.path.join(directory, name)
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["objcopy", strip, f"--add-gnu-debuglink={debug}", path, bare], check=True)
    return bare, debug


def symbolize(path, addrs, *flags):
    return text(yrt.YRT, "symbolize", *flags, "-e", path, stdin="".join(f"0x{a:x}\n" for a in addrs))


def test_separate_debug_file_and_one_of_another_build():
    with tempfile.TemporaryDirectory() as d:
        program = native(d, "program", "g++")
        bare, debug = split(d, program, "bare")
        addrs = choose(program)
        whole = symbolize(program, addrs)
        assert symbolize(bare, addrs) == whole.replace("crtstuff.c:0:0", "??:0:0"), "strip drops the symbols of files"
        stripped, _ = split(d, program, "stripped", "--strip-all")
        places = [
            re.findall(r"^(?!\?\?|crtstuff).*:[1-9]\d*:\d+$", out, re.M) for out in (whole, symbolize(stripped, addrs))
        ]
        assert places[0] == places[1] and len(places[0]) > len(addrs)
        other = native(d, "other", "g++", "-O3")
        subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
        assert "inlines.cc" not in symbolize(bare, addrs), "lines of another build's debug file"
        said = fails("-e", bare)
        assert said[0] == yrt.OK and debug in said[1] and "another build" in said[1], said
        os.unlink(debug)
        assert "no debug information" in fails("-e", bare)[1]


def test_compressed_in_any_way():
    """zlib, its older form, and zstd, which llvm-symbolizer 14 does not know: the same as not compressed."""
    with tempfile.TemporaryDirectory() as d:
        program = native(d, "program", "g++")
        addrs = choose(program)
        plain = symbolize(program, addrs)
        for how in ("zlib", "zlib-gnu", "zstd"):
            packed = os.path.join(d, how)
            subprocess.run(["objcopy", f"--compress-debug-sections={how}", program, packed], check=True)
            assert os.path.getsize(packed) < os.path.getsize(program)
            assert symbolize(packed, addrs) == plain, how


def test_dwz():
    """What dwz moved to another file is found there; without that file the rest is still resolved."""
    with tempfile.TemporaryDirectory() as d:
        programs = [native(d, "a", "g++"), native(d, "b", "g++", "-O1"), native(d, "c", "g++", "-O0")]
        addrs = [choose(p) for p in programs]
        before = [symbolize(p, a) for p, a in zip(programs, addrs)]
        subprocess.run([tool("dwz"), "-m", os.path.join(d, "shared"), *programs], check=True, capture_output=True)
        assert os.path.exists(os.path.join(d, "shared")), "dwz found nothing in common"
        assert [symbolize(p, a) for p, a in zip(programs, addrs)] == before
        os.unlink(os.path.join(d, "shared"))
        without = symbolize(programs[0], addrs[0])
        assert "inlines.cc" in without and without.count("\n\n") == before[0].count("\n\n")


def test_demangled_and_plain_options():
    with tempfile.TemporaryDirectory() as d:
        program = native(d, "p", "g++")
        work = int(re.search(r"^(\w+) . _ZN7fixture4workEl$", text("nm", program), re.M)[1], 16)
        assert symbolize(program, [work]).startswith("fixture::work(long)\n" + NATIVE + "/inlines.cc:")
        assert symbolize(program, [work], "--no-demangle").startswith("_ZN7fixture4workEl\n")
        addrs = choose(program)
        plain = symbolize(program, addrs, "--no-inline")
        assert plain == symbolize(program, addrs, "--no-inlines")
        assert all(block.count("\n") == 1 for block in plain.split("\n\n")[:-1]), "more than one frame"
        theirs = text(LLVM, "--no-inlines", f"--obj={program}", stdin="".join(f"0x{a:x}\n" for a in addrs))
        lines = [[line for line in out.split("\n") if re.search(r":\d+:\d+$", line)] for out in (plain, theirs)]
        assert len(lines[0]) == len(lines[1]) == len(addrs)
        differ = [(a, b) for a, b in zip(*lines) if a != b and not (a == "??:0:0" and b.endswith(":0:0"))]
        assert not differ, differ[:5]
        assert (
            text(yrt.YRT, "symbolize", "-e", program, hex(work), "nonsense")
            == symbolize(program, [work]) + "nonsense\n"
        )


def test_an_answer_for_each_line():
    """A script that waits for an answer gets it, before it closes its end."""
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    with subprocess.Popen(
        [yrt.YRT, "symbolize", "-e", libc], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as p:
        for question in ("0x10", "what", "0x20"):
            p.stdin.write(question + "\n")
            p.stdin.flush()
            first = p.stdout.readline()
            assert first == ("what\n" if question == "what" else "??\n"), first
            if question != "what":
                assert p.stdout.readline() == "??:0:0\n" and p.stdout.readline() == "\n"
        p.stdin.close()
        assert p.wait(300) == 0


def test_input_as_llvm_takes_it():
    with tempfile.TemporaryDirectory() as d:
        program = native(d, "p", "gcc")
        at = int(re.search(r"^(\w+) . work$", text("nm", program), re.M)[1], 16)
        lines = (
            f"0x{at:x}\n  0x{at:X}\n{at}\n0{at:o}\n0b{at:b}\nCODE 0x{at:x}\n0x{at:x}"
            f" more\n{at:016x}\nfoo\n\n-1\n0x\n0xg\n0xffffffffffffffffff\n"
        )
        mine = text(yrt.YRT, "symbolize", "-e", program, stdin=lines)
        theirs = text(LLVM, f"--obj={program}", stdin=lines)
        assert mine == theirs, f"{mine}\n--- llvm-symbolizer\n{theirs}"


def fails(*args):
    done = subprocess.run([yrt.YRT, "symbolize", *map(str, args), "0x1000"], capture_output=True, text=True,
                          timeout=300)
    return done.returncode, done.stderr


def test_bad_files():
    assert fails("-e", "/nonexistent")[0] != 0 and "/nonexistent" in fails("-e", "/nonexistent")[1]
    code, said = fails("-e", "/etc/passwd")
    assert code == yrt.INPUT and "not an ELF file" in said, (code, said)
    assert fails()[0] == yrt.USAGE and "-e" in fails()[1]
    assert fails("-e", "/")[0] == yrt.INPUT


def test_damaged_files():
    """Cut off, or with bytes changed: an answer or an error, soon, and never a crash."""
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as d:
        program = native(d, "p", "g++", "-gz")
        with open(program, "rb") as f:
            whole = f.read()
        damaged = os.path.join(d, "damaged")
        addrs = "".join(f"0x{a:x}\n" for a in choose(program)[:300])
        for i in range(60):
            data = bytearray(whole[:rng.randrange(64, len(whole))] if i % 3 == 0 else whole)
            for _ in range(0 if i % 3 == 0 else 200):
                data[rng.randrange(0x40 if i % 2 else len(data) // 3, len(data))] = rng.randrange(256)
            with open(damaged, "wb") as f:
                f.write(data)
            done = subprocess.run([yrt.YRT, "symbolize", "-e", damaged], input=addrs, capture_output=True, text=True,
                                  timeout=300, errors="replace")
            assert done.returncode in (yrt.OK, yrt.INPUT, yrt.UNSUPPORTED), (i, done.returncode, done.stderr)


yrt.main(globals())
