# SPDX-License-Identifier: Apache-2.0
"""
The Y language: what each case of tests/ylang prints in each engine, live and in a core of the same process; random
expressions against what the C compiler makes of them.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile

import ylang
import yrt


@contextlib.contextmanager
def asked():
    """The fixture, and its core."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory, yrt.Fixture("asked", seconds=None, wait=False) as f:
        core = os.path.join(directory, "core")
        command = ["gdb", "-nx", "-batch", "-p", str(f.pid), "-ex", f"generate-core-file {core}"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        yield f.pid, core, directory


def check(case, done, where):
    text = f"{case.name} {where}\n{case.source}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    if case.refused:
        assert done.returncode == yrt.USAGE and not done.stdout, text
        assert all(line in done.stderr for line in case.refused), text
        return
    assert done.stdout == case.out, text
    assert all(line in done.stderr for line in case.err), text
    assert ("it ended the handler" in done.stderr) == any("it ended" in line for line in case.err), text


def test_vm():
    n = 0
    with asked() as (pid, core, _):
        for case in ylang.cases():
            for where in (["-p", pid], ["--core", core]):
                check(case, ylang.run("-e", case.source, *ylang.target(*where)), where)
                n += 1
    assert n >= 300, n
    yield f"{n} runs as written"


def debugged(debugger, run):
    """All cases that compile, as scripts of a debugger, in one process of it each for live and core."""
    if not ylang.available(debugger):
        raise yrt.Skipped(f"no {debugger} here")
    with asked() as (pid, core, directory):
        cases = [c for c in ylang.cases() if not c.refused]
        program = os.path.realpath(yrt.fixture_path("asked"))
        texts = [ylang.export(case, debugger, ylang.target("-p", pid, steps=110000)) for case in cases]
        for where, name in ((["-p", pid], "live"), ([program, "-c", core], "core")):
            scripts, outputs = [], []
            for i, text in enumerate(texts):
                scripts.append(os.path.join(directory, f"{debugger}_{name}_{i}.py"))
                outputs.append(os.path.join(directory, f"{debugger}_{name}_{i}.txt"))
                with open(scripts[-1], "w", encoding="utf-8") as f:
                    f.write(f'import os\nos.environ["YRT_OUT"] = {outputs[-1]!r}\n{text}')
            said = run(scripts, *where)
            for case, output in zip(cases, outputs):
                found = yrt.read(output) if os.path.exists(output) else "nothing was written"
                text = f"{case.name} {debugger} {name}\n{found}\n---\n{case.out}\n{said.stderr[-3000:]}"
                assert found == case.out, text
        return len(cases)


def test_gdb():
    yield f"{debugged('gdb', ylang.gdb)} programs print the same, live and in a core"


def test_lldb():
    yield f"{debugged('lldb', ylang.lldb)} programs print the same, live and in a core"


def test_c_is_the_oracle():
    """Also with -fwrapv's own width of each operand, as each is printed as a long; by the VM and the debuggers."""
    seed, many = int(os.environ.get("YRT_SEED", "7")), int(os.environ.get("YRT_EXPRESSIONS", "1500"))
    with ylang.expressions(seed, many) as (p, truth, parts, directory):
        source, _ = ylang.functions(parts)
        path = os.path.join(directory, "e.y")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source + "_probe _oneshot {" + "".join(f"part{i}();" for i in range(len(parts))) + "}")
        ylang.equal(seed, parts, truth, ylang.run(path, "-p", p.pid))
        yield f"{many} expressions as gcc -fwrapv computes them"
        for debugger, run in (("gdb", ylang.gdb), ("lldb", ylang.lldb)):
            if not ylang.available(debugger):
                raise yrt.Skipped(f"no {debugger} here")
            script, output = os.path.join(directory, debugger + "_e.py"), os.path.join(directory, debugger + ".txt")
            text = ylang.run(path, "-p", p.pid, "--emit", debugger).stdout
            with open(script, "w", encoding="utf-8") as f:
                f.write(f'import os\nos.environ["YRT_OUT"] = {output!r}\n{text}')
            said = run([script], "-p", p.pid)
            said.stdout = yrt.read(output) if os.path.exists(output) else ""
            ylang.equal(seed, parts, truth, said)
            yield f"{debugger}: the same {many}"


BODIES = """
enum colour { RED, GREEN = 5, BLUE, FAR = 1 << 4, ALL = RED | FAR | 2 };
struct inner { char c; short s; };
typedef struct inner inner_t;
union u { int i; double d; char text[13]; };
struct bits { unsigned a : 3; int b : 7; unsigned long c : 40; char d; unsigned char e : 4, f : 5; int : 0;
	short g : 2; int : 5; int h : 20; };
struct packed { char a; int b; short c; long d; } __attribute__((packed));
typedef struct { long len; char *data; } str_t;
struct node { struct node *next; struct later *more; int (*call)(int, char *); enum colour colour; inner_t in[3];
	union u u; struct { int x; char y; struct { char deep[2][3]; }; }; union { int v; char w; } named; str_t name;
	_Bool flag; double ratio; float f; struct packed p; struct bits bits; char grid[2][3][ALL]; char last;
	long tail[]; };
struct later { char c; struct node *back; };
"""
MEMBERS = {"struct node": "next more call colour in u x y deep named name flag ratio f p bits grid grid[1][2] tail",
           "struct inner": "c s", "union u": "i d text", "struct packed": "a b c d", "struct later": "c back",
           "str_t": "len data", "struct bits": "d"}


def test_gcc_lays_out_the_same():
    """Structures, bit-fields and enumerators that a program says itself."""
    lines = ['printf("%d %d %d %d\\n", RED, GREEN, BLUE, ALL);']
    lines += [f'printf("{b} %ld\\n", (long)bits->{b});' for b in "abcdefgh"]
    for t, members in MEMBERS.items():
        lines.append(f'printf("{t} %lu\\n", (unsigned long)sizeof({t}));')
        lines += [f'printf("{m} %lu\\n", (unsigned long)offsetof({t}, {m}));' for m in members.split()]
    body = "struct bits *bits = (struct bits *)&bytes;\n" + "\n".join(lines)
    c = "#include <stddef.h>\n#include <stdio.h>\nunsigned char bytes[64];\n" + BODIES + (
        "int main(void) { for (int i = 0; i < 64; i++) bytes[i] = i * 37 + 11;\n" + body + "fclose(stdout);getchar();}")
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        source, program = os.path.join(directory, "b.c"), os.path.join(directory, "b")
        with open(source, "w", encoding="utf-8") as f:
            f.write(c)
        subprocess.run(["gcc", "-w", "-o", program, source], check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            truth = p.stdout.read()
            done = ylang.run("-q", "-e", BODIES + f"_probe _oneshot {{ {body} }}", "-p", p.pid)
    assert done.stdout == truth and truth.count("\n") == len(lines), (truth, done)
    yield f"{len(lines)} sizes, offsets and values"


def regex(r, depth):
    """A random regex that Perl and Y both have. Loops over what may be empty differ in captures, so there are none."""
    if not depth:
        return r.choice(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\d", "x"])
    a, b = regex(r, depth - 1), regex(r, depth - 1)
    if depth == 1:
        return a + r.choice(["", "*", "+", "?", "*?", "+?", "{2}"])
    return r.choice([a + b, a + b, f"(?:{a}|{b})", f"({a})", f"(?:{a}){{1,2}}", f"(?:{a})?{b}", f"^{a}", f"(?:{a}$)",
                     f"\\b{a}", a + r.choice(["", b])])


def test_perl_is_the_oracle():
    r, many = random.Random(int(os.environ.get("YRT_SEED", "7"))), int(os.environ.get("YRT_REGEXES", "400"))
    pairs = []
    while len(pairs) < many:
        pattern = regex(r, r.randint(1, 4))
        if pattern.count("(") - pattern.count("(?:") <= 9:
            pairs.append((pattern, "".join(r.choice("aabbcx1 ") for _ in range(r.randint(0, 12)))))
    source, script = [], []
    for pattern, text in pairs:
        captures = pattern.count("(") - pattern.count("(?:")
        names = ["$0"] + [f"${i + 1}" for i in range(captures)]
        form = "<%s>" * len(names)
        source.append(f'if ("{text}" ~~ rx/{pattern}/) printf("{form}\\n", {", ".join(names)}); else printf("no\\n");')
        perl = ["$&"] + [f"defined ${i + 1} ? ${i + 1} : ''" for i in range(captures)]
        shown = f"printf(\"{form}\\n\", {', '.join(perl)})"
        script.append(f"if ('{text}' =~ m/{pattern}/) {{ {shown} }} else {{ print \"no\\n\" }}")
    truth = subprocess.run(["perl", "-e", "\n".join(script)], capture_output=True, text=True, check=True).stdout
    with asked() as (pid, _, directory):
        path = os.path.join(directory, "r.y")
        with open(path, "w", encoding="utf-8") as f:
            f.write("_probe _oneshot {\n" + "\n".join(source) + "\n}\n")
        done = ylang.run(path, "-p", pid)
    wrong = [(p, t, s) for p, t, s in zip(pairs, truth.splitlines(), done.stdout.splitlines()) if t != s]
    assert done.stdout == truth, f"{len(wrong)} of {many}: {wrong[:5]}\n{done.stderr[-1000:]}"
    yield f"{many} regexes as Perl matches them"


PREPROCESSED = r"""
#define f(a) a*g
#define g(a) f(a)
#define x 3
#define h(x, ...) #x #__VA_ARGS__ x ## 1 (__VA_ARGS__)
#define EMPTY
#define cat(a, b) a ## b
#define xcat(a, b) cat(a, b)
#define str(s) # s
#define xstr(s) str(s)
#define z z[0]
#define t(x,y,z) x ## y ## z
#define none(...) [__VA_ARGS__]
#define two(a, b) <a|b>
f(2)(9) f(x) g(f)(1) xcat(x, 1) cat(x, 1) xcat(cat(1, 2), 3)
str(@ "a\n" '\0') xstr(x) h(EMPTY, 1, 2) h(a b,) none() none(1,,2) two((1,2), f(x)) two(,)
z t(1,2,3) t(,4,5) t(6,,7) t(8,9,) t(10,,) t(,11,) t(,,12) t(,,)
#if defined(x) && x == 3 && (1 ? 2 : 0/0) > -1 && !(-1 > 0u) == 0
yes
#elif 1
no
#endif
#if 0
#if 1
no
#else
no
#endif
#elif x << 2 == 12 || 1/0
second
#else
no
#endif
#undef x
x f
(3) two
(1, 2)
"""


def test_gcc_is_the_oracle_of_macros():
    """Its tokens, as both print them."""
    text = PREPROCESSED.replace("@", "-")
    gcc = subprocess.run(["gcc", "-E", "-P", "-w", "-xc", "-"], input=text, capture_output=True, text=True, check=True)
    tokens = re.findall(r'"(?:\\.|[^"\\])*"|\w+|[^\s\w]', gcc.stdout)
    marked = text + "_probe _oneshot { }\n"
    with asked() as (pid, _, directory):
        path = os.path.join(directory, "m.y")
        with open(path, "w", encoding="utf-8") as f:
            f.write(marked)
        done = ylang.run(path, "-p", pid, "--emit", "tokens")
    assert done.returncode == 0, done
    found = re.findall(r'"(?:\\.|[^"\\])*"|\w+|[^\s\w]', done.stdout)
    assert found[: len(tokens)] == tokens, f"{found}\n{tokens}"


def test_bad_input():
    """No debug information, another build's, files that are none, programs that are none."""
    with asked() as (pid, core, directory), yrt.Fixture("asked_stripped", seconds=None, wait=False) as stripped:
        program = os.path.realpath(yrt.fixture_path("asked"))
        ask = "_probe _oneshot { _print(sizeof(struct node)); }"

        def said(code, *words, args=("-e", ask, "-p", pid)):
            done = ylang.run(*args)
            assert done.returncode == code and all(w in done.stderr for w in words), f"{args}: {done}"

        said(yrt.USAGE, "has no debug information", "/usr/lib/debug/.build-id/", "--types FILE",
             args=("-e", ask, "-p", stripped.pid))
        for unknown, message in (("(node_t *)8", "the target has no type node_t"), ("nobody", "a name nobody")):
            said(yrt.USAGE, message, "has no debug information",
                 args=("-e", f"_probe _oneshot {{ _print({unknown}); }}", "-p", stripped.pid))
        said(yrt.UNSUPPORTED, "of another build", args=("-e", ask, "-p", stripped.pid, "--types", "/bin/ls"))
        said(yrt.INPUT, "not an ELF file", args=("-e", ask, "-p", pid, "--types", "/etc/passwd"))
        done = ylang.run("-e", ask, "-p", pid, "--types", program)
        assert done.stdout == "24\n", done
        said(yrt.USAGE, "one program is needed", args=("-p", pid))
        said(yrt.USAGE, "a target is needed", args=("-e", ask))
        said(yrt.USAGE, "exclude each other", args=("-e", ask, "-p", pid, "--core", core))
        said(yrt.NO_PROCESS, "999999999", args=("-e", ask, "-p", 999999999))
        said(yrt.INPUT, "nor is it an analyser", args=("nothing-here", "-p", pid))
        said(yrt.USAGE, "a '}' is missing", args=("-e", "_probe _oneshot {", "-p", pid))
        said(yrt.USAGE, "a comment without an end", args=("-e", "/*", "-p", pid))
        said(yrt.USAGE, "nested more than", args=("-e", "_probe _oneshot { int x = " + "(" * 5000 + "1", "-p", pid))
        said(yrt.USAGE, "--emit takes", args=("-e", ask, "-p", pid, "--emit", "perl"))
        with open(os.path.join(directory, "nul.y"), "wb") as f:
            f.write(b"int x;\0")
        said(yrt.USAGE, "NUL byte", args=(os.path.join(directory, "nul.y"), "-p", pid))
        said(yrt.INPUT, "Is a directory", args=(directory + "/", "-p", pid))
        with subprocess.Popen(["sh", "-c", 'sleep 0.3; echo "$0"', ask], stdout=subprocess.PIPE) as late:
            done = subprocess.run([yrt.YRT, "y", "-p", str(pid), "/dev/stdin"], stdin=late.stdout, capture_output=True,
                                  text=True, timeout=300)
        assert done.stdout == "24\n", done  # of a pipe whose writer is late
        long_program = "int f0(int n) { return n; }\n" + "".join(
            f"int f{i}(int n) {{ return f{i - 1}(n) + {i}; }}\n" for i in range(1, 2500)) * 1
        done = ylang.run("-e", long_program + "_probe _oneshot { _print(f200(1)); }", "-p", pid)
        assert done.stdout == f"{1 + sum(range(1, 201))}\n", done


CPP = """
#include <cstdio>
#include <string>
#include <unistd.h>
namespace shop {
enum class State : short { New = -1, Paid = 1000 };
enum Colour { Red = 5, Blue };
struct Oldest { int same = 1; };
struct Older : Oldest { };
struct Nearer { int same = 2; };
struct Both : Older, Nearer { } both;
struct Base { int id; virtual ~Base() = default; };
struct Order : Base { State state; Colour colour; std::string who; static long made; enum { Small, Large = 7 } size; };
long Order::made = 42;
namespace { struct Hidden { static int deep; }; int Hidden::deep = -3; }
}
shop::Order first;
int main() {
	first.id = shop::Hidden::deep + 10; first.state = shop::State::Paid; first.colour = shop::Blue; first.who = "ada";
	first.size = shop::Order::Large;
	printf("%d\\n", getpid()); fflush(stdout); getchar(); return (int)shop::Order::made + shop::Hidden::deep;
}
"""
ASKS_CPP = """
_probe _oneshot {
	_print(shop::Order::made, first.id, first.state == shop::State::Paid, shop::State::New, shop::State::Paid);
	_print(first.colour == shop::Blue, first.colour == shop::Colour::Blue, Red, sizeof(shop::State));
	_print(_str(first.who._M_dataplus._M_p, (long)first.who._M_string_length), first.size == shop::Order::Large);
	shop::Base *base = (shop::Base *)&first;
	_print(base->id, shop::both.same, first.who._M_dataplus._M_p == nullptr);
}
"""


def test_cpp():
    """Scoped enumerators, classes' variables, bases and members, by DWARF 4 and 5."""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        source, program = os.path.join(directory, "shop.cc"), os.path.join(directory, "shop")
        with open(source, "w", encoding="utf-8") as f:
            f.write(CPP)
        for version in (4, 5):
            subprocess.run(["g++", f"-gdwarf-{version}", "-O1", "-o", program, source], check=True)
            with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
                pid = int(p.stdout.readline())
                done = ylang.run("-e", ASKS_CPP, "-p", pid)
                assert done.stdout == "42 7 1 -1 1000\n1 1 5 2\nada 1\n7 2 0\n", (version, done)


def test_names_by_typedef():
    """A structure that has its name by a typedef is the same one in each file of a program, as C has it."""
    head = "typedef struct { long len; const char *data; } text_t; typedef struct { text_t name; int n; } line_t;\n"
    main = head + """#include <stdio.h>
    #include <unistd.h>
    extern text_t *other; extern void *line; text_t own = {3, "own"};
    int main(void) { printf("%d\\n", getpid()); fflush(stdout); return getchar() && !other && !line; }"""
    second = head + 'line_t lines = {{5, "other"}, 7}; text_t *other = &lines.name; void *line = &lines;\n'
    ask = """long length(text_t *t) { return t->len; }
    _probe _oneshot { text_t *t = &lines.name; text_t *all[2]; all[0] = &own; all[1] = t;
        for (int i = 0; i < 2; i++) _print(_str(all[i]->data), length(all[i]));
        _print(length(other), lines.n, length(&((line_t *)line)->name)); }"""
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        paths = [os.path.join(directory, name) for name in ("a.c", "b.c")]
        for path, text in zip(paths, (main, second)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        program = os.path.join(directory, "two")
        subprocess.run(["gcc", "-g", "-o", program, *paths], check=True)
        with yrt.Program([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            pid = int(p.stdout.readline())
            done = ylang.run("-q", "-e", ask, "-p", pid)
            assert done.stdout == "own 3\nother 5\n5 7 5\n", done
            done = ylang.run("-e", "_probe _oneshot { text_t t = own; }", "-p", pid)
            assert "a variable of type text_t" in done.stderr, done


def test_several_processes():
    """-p LIST, --select and -s: each process by itself, in the order of pids, behind its name."""
    ask = ["-q", "-e", "_probe _oneshot { _print(_pid, counts[5]); }"]
    with tempfile.TemporaryDirectory(prefix="yrt-y-") as directory:
        own = os.path.join(directory, f"asked{os.getpid()}")
        shutil.copy(yrt.fixture_path("asked"), own)
        with yrt.Fixture(own, seconds=None, wait=False) as a, yrt.Fixture(own, seconds=None, wait=False) as b:
            name = os.path.basename(own)
            said = {pid: f"==> {name[:15]} (pid {pid}) <==\n{pid} 9\n" for pid in (a.pid, b.pid)}
            done = ylang.run(*ask, "-p", f"{a.pid},{b.pid}")
            assert done.stdout == said[a.pid] + said[b.pid], done
            done = ylang.run(*ask, "--select", f"exe={name}")
            assert done.stdout in (said[a.pid] + said[b.pid], said[b.pid] + said[a.pid]), done
            lines = ylang.run(*ask, "--json", "-p", f"{a.pid},{b.pid}").stdout.splitlines()
            assert [json.loads(line)["kind"] for line in lines] == ["process", "text"] * 2, lines
            done = ylang.run(*ask, "-p", f"{a.pid},{b.pid}", "--check")
            assert done.returncode == yrt.USAGE and "--check takes one process" in done.stderr, done
        with yrt.Program(["sh", "-c", f"{own}; :"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            child = json.loads(p.stdout.readline())["pid"]
            done = ylang.run("-q", "-e", "_probe _oneshot { _print(_pid); }", "-s", "-p", p.pid)
            assert [int(line) for line in done.stdout.splitlines()[1::2]] == [p.pid, child], done
            os.kill(child, signal.SIGTERM)


STAP = """
_map long n[long];
unsigned char last;
_probe _oneshot {
	for (int i = 0; i < 3; i++)
		last += 100 / i ?? 7;
	n[last]++;
	printf("%3d|%x\\n", last, (short)-1);
}
"""
STAP_SAYS = """
global m0[10000] # n
global g0 = 0 # last

function f0:long () { /* _oneshot */
  b = 0
  while (1) {
    if (b < 5) {
      if (b < 2) {
        if (b < 1) {
          s1 = 0
          s0 = s1
          b = 1; continue
        } else {
          s2 = s0
          s3 = 3
          s4 = s2 < s3
          b = s4 ? 2 : 4; continue
        }
      } else {
        if (b < 3) {
          s6 = s0
          s7 = 100
          try {
            s8 = (((yrt_div(s7, s6, 5)) & 0xffffffff) ^ 0x80000000) - 0x80000000
          } catch { b = 5; continue }
          s5 = s8
          b = 6; continue
        } else {
          if (b < 4) {
            s12 = s0
            s13 = 1
            s14 = (((s12 + s13) & 0xffffffff) ^ 0x80000000) - 0x80000000
            s0 = s14
            b = 1; continue
          } else {
            s15 = g0
            s16 = s15
            s17 = 1
            m0[s16] = m0[s16] + s17
            s18 = m0[s16]
            s19 = 1
            s20 = s18 - s19
            s21 = 0
            s22 = 0
            s23 = g0
            b = 8; continue
          }
        }
      }
    } else {
      if (b < 8) {
        if (b < 6) {
          s9 = 7
          s5 = s9
          b = 6; continue
        } else {
          if (b < 7) {
            s10 = (s5) & 0xff
            s11 = (g0 + s10) & 0xff
            g0 = s11
            b = 3; continue
          } else {
            s21 = yrt_status
            s22 = yrt_at
            b = 8; continue
          }
        }
      } else {
        if (b < 9) {
          s24 = 0
          s25 = 0
          s26 = -1
          b = 10; continue
        } else {
          if (b < 10) {
            s24 = yrt_status
            s25 = yrt_at
            b = 10; continue
          } else {
            if (s21) printf("%3s", yrt_value(s21, s22)) else printf("%3d", s23)
            print("|")
            if (s24) printf("%s", yrt_value(s24, s25)) else printf("%x", s26 & 0xffff)
            print("\\n")
            return 0
          }
        }
      }
    }
  }
}

probe timer.profile {
  if (pid() != target() || yrt_once++) next
  try { f0() } catch (message) { yrt_ended(message) }
  exit()
}

"""


def stapped(source, *where):
    done = ylang.run("-e", source, *where, "--emit", "stap")
    return done.stdout, done.stderr


def test_stap():
    """A script as it is meant to be; each fourth case is one, or refused with its place and why; none writes."""
    with asked() as (pid, _, _directory):
        text, why = stapped(STAP, "-p", pid)
        code = re.sub(r"^ +s\d+ = (0|\"\")\n(?=( +s\d+ = (0|\"\")\n)*  b = 0)", "", text, flags=re.M)
        assert STAP_SAYS in code, f"{why}\n{code}"
        assert f"# Made by yrt y --emit stap, for process {pid}" in text and f"stap -x {pid} " in text, text
        assert 'if (place == 5) return "-e" . ":6:15"' in text, text
        scripts = refused = 0
        for case in [c for c in ylang.cases() if not c.refused][::4]:
            text, why = stapped(case.source, "-p", pid)
            assert bool(text) != (": stap: " in why or "stap: a string with" in why), f"{case.source}\n{text}\n{why}"
            assert not re.search(r"%\{|set_u|@cast|assert\(", text), text
            scripts += bool(text)
            refused += not text
        assert scripts > 25 and refused < scripts / 4, (scripts, refused)
        yield f"{scripts} scripts, {refused} refused"
        for source, said in (
                ("_probe _end { _print(list->value); }", ":1:28: stap: _end: it runs in no process there"),
                ('_probe _oneshot { _print(_str(text) ~~ rx/a/); }', "stap: match: regular expressions are others"),
                ("_map long n[_stack]; _probe add { n[_stack]++; }", "stap: stack: its stacks have no frames of"),
                ("_probe add:return { _print($return); }", "its probes of returns put another address"),
                ("_probe syscall:openat { _print(_tid); }", "tracepoints and system calls have other names"),
                ("_map long n[int]; _probe _oneshot { _print(n[1]); }", "nothing is ever put into n")):
            text, why = stapped(source, "-p", pid)
            assert not text and said in why, f"{source}\n{text}\n{why}"
        check = ylang.run("-e", "_probe add { _print(_tid); }", "-p", pid, "--check").stdout
        assert "\nstap: yes\n" in check, check


@yrt.measured
def test_stap_compiles():
    """stap itself takes the scripts, up to its pass 2: names, types and probe points are right."""
    headers = sorted(os.listdir("/lib/modules")) if os.path.isdir("/lib/modules") else []
    if not shutil.which("stap") or not headers:
        raise yrt.Skipped("no stap, or no kernel headers here")
    n = 0
    with asked() as (pid, _, directory), yrt.Fixture("called", seconds=None, wait=False) as called:
        sources = [(case.source, pid) for case in ylang.cases() if not case.refused]
        sources.append(("_agg a[short]; _probe serve { a[$order->status] <<< $many; } _probe _timer(1s) { _print(a); }"
                        " _probe _profile(99) { a[1] <<< 1; } _probe _end { _hist(a); }", called.pid))
        for source, target in sources:
            text, _why = stapped(source, "-p", target)
            if not text:
                continue
            path = os.path.join(directory, "y.stp")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run(["stap", "-r", headers[-1], "-p2", path], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{source}\n{text}\n{done.stderr}"
            n += 1
    yield f"{n} scripts pass stap -p2"


def test_checks():
    """--check, --explain, --list and --emit ir."""
    with asked() as (pid, _, _directory):
        done = ylang.run("-e", "_probe _oneshot { _print(list->value); }", "-p", pid, "--explain", "-q")
        assert re.search(r"struct node\.value: offset 8, int, from \S*asked", done.stderr), done
        done = ylang.run("-e", "_probe _oneshot { _print(list->value); }", "-p", pid, "--check")
        assert done.stdout.startswith("vm: yes\n"), done
        ir = ylang.run("-e", "_probe _oneshot { _print(list->value); }", "-p", pid, "--emit", "ir").stdout
        assert "load i32" in ir and "fail @" in ir and "handler 0 oneshot" in ir, ir
    listed = ylang.run("--list").stdout
    assert "ngx-requests" in listed and "*/" not in listed, listed


yrt.main(globals())
