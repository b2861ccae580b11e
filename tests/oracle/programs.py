# SPDX-License-Identifier: Apache-2.0
"""
The catalogue: real programs of many authors, and what each needs. A program works until it is killed. In its words
{here} is programs/, {dir} a directory of its own, {python} a Python with the packages of PYPI, {java} and {classes} a
JVM and programs/*.java compiled, {natives} their native methods.
"""

import os
from dataclasses import dataclass, field

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PYPI = (
    "numpy",
    "gmpy2",
    "lupa",
    "jinja2",
    "django",
    "lxml",
    "pillow",
    "sympy",
    "pandas",
    "black",
    "sqlalchemy",
    "networkx",
    "tornado",
    "orjson",
    "regex",
    "pygments",
)
SHARE = "/usr/share/java/"


@dataclass(frozen=True)
class Program:
    name: str
    language: str
    words: tuple
    package: str = ""  # of Debian
    env: dict = field(default_factory=dict)
    warm: float = 2
    small: bool = False  # needs what fixtures/setup.sh installs anyway
    repeat: bool = False  # it ends by itself: a shell starts it again and again, and the newest is looked at
    stdin: str = ""

    def __hash__(self):
        return hash(self.name)


def native(name, package, *words, **more):
    return Program(name, "native", words, package, **more)


def library(name):
    return Program(f"python_library_{name}", "python", ("python3", "{here}/python_library.py", name), small=True)


def interpreted(name):
    return Program(
        f"lua_{name}_interpreted", "lua", ("luajit", "-joff", f"{{here}}/lua_{name}.lua"), "luajit2", small=True
    )


def lua(name, package, **more):
    return Program(f"lua_{name}", "lua", ("luajit", f"{{here}}/lua_{name}.lua"), package, **more)


def lua_fixture(name):
    return Program(f"lua_{name}", "lua", ("luajit", f"{{fixtures}}/lua/{name}.lua"), "luajit2", small=True)


def puc(name, version, package="", **more):
    """By PUC-Lua's own interpreter."""
    return Program(
        f"puc_{name}_{version}",
        "puc",
        (f"lua{version}", f"{{here}}/lua_{name}.lua"),
        package or f"lua{version}",
        small=not package,
        **more,
    )


def python(name, **more):
    return Program(f"python_{name}", "python", ("{python}", f"{{here}}/python_{name}.py"), **more)


def perl(name, package="perl", **more):
    env = {"PERL5OPT": "-I{here} -Mperl_calls", "YRT_PERL_CALLS": "{dir}/calls"}
    return Program(f"perl_{name}", "perl", ("perl", f"{{here}}/perl_{name}.pl"), package, env=env, **more)


def java(name, package, jars, *words, options=(), **more):
    path = ":".join(["{classes}", *(SHARE + j for j in jars)])
    return Program(
        f"java_{name}", "java", ("{java}", "-Xmx300m", *options, "-cp", path, *words), package, warm=4, **more
    )


def driver(name, package, jars, program, *words, **more):
    """A library that jars/ has a program for, which the JVM compiles itself."""
    return java(name, package, jars, f"{{here}}/jars/{program}.java", *words, **more)


FACTOR = "for(i=1,10^7,factor(random(2^120)))\n"
QUEENS = (
    "(defn q [n k c] (if (= k n) 1 (reduce + (for [i (range n) :when (every? (fn [[d j]] (and (not= i j) (not="
    " (Math/abs (- i j)) (inc d)))) (map-indexed vector c))] (q n (inc k) (cons i c)))))) (while true (q 7 0 ()))"
)
CALLS = (
    "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } var s; while (true) { s = ''; for (var i = 0; i < 12;"
    " i++) s += f(i) + ','; s.replace(/1/g, 'x') }"
)
INSERTS = (
    "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<100000000) SELECT sum(length(hex(x))),"
    " group_concat(x%7) FROM c GROUP BY x%1000 ORDER BY 1;"
)
RUBY = (
    "def f(n) n < 2 ? n : f(n-1) + f(n-2) end; loop { h = Hash.new(0); 2000.times { |i| h[(i*7919%97).to_s] += f(8) };"
    " h.sort_by { |k, v| -v } }"
)
PHP = (
    "function f($n) { return $n < 2 ? $n : f($n-1) + f($n-2); } while (true) { $a = []; for ($i = 0; $i < 500; $i++)"
    " $a[] = md5(f(9) . $i); sort($a); preg_match_all('/a+b/', implode(',', $a)); }"
)
ZSH = "while ((1)); do a=(); for i in {1..500}; do a+=($((i*7919%1013))); done; s=${(j:,:)${(on)a}}; done"
BASH = 'while :; do a=; for ((i=0;i<300;i++)); do a+="$((i*7919%1013)) "; [[ $a =~ 7(8|9) ]]; done; done'
ASH = "while :; do i=0; while [ $i -lt 300 ]; do i=$((i+1)); case $i in *7) a=${i#1};; esac; done; done"
PERL = (
    "sub f { my $n = shift; $n < 2 ? $n : f($n-1) + f($n-2) } while (1) { my %h; $h{f(8) . $_ % 97}++ for 1..500; my $s"
    " = join ',', sort keys %h; $s =~ s/(\\d+)7/x$1/g }"
)
GROOVY = (
    "while (true) { def m = [:]; (1..500).each { i -> m[\"k${i % 17}\"] = (m[\"k${i % 17}\"] ?: 0) + i }; m.sort {"
    " -it.value }.collect { k, v -> k * 2 } }"
)
JRUBY = (
    "loop { h = Hash.new(0); 500.times { |i| h[(i * 7919 % 97).to_s] += i }; h.sort_by { |k, v| -v }.map { |k, v|"
    " k.upcase } }"
)
JYTHON = (
    "exec('''\ndef f(n):\n  return n if n < 2 else f(n-1) + f(n-2)\nwhile True:\n  sorted([str(f(9)) + str(i % 7) for i"
    " in range(200)])\n''')"
)

PROGRAMS = [
    native("openssl", "openssl", "openssl", "speed", "-seconds", "300", "rsa2048", small=True),
    native("openssl_aes", "openssl", "openssl", "speed", "-seconds", "300", "-evp", "aes-256-gcm", small=True),
    native("sqlite", "sqlite3", "sqlite3", ":memory:", INSERTS, small=True),
    native("objdump", "binutils", "objdump", "-d", "/usr/bin/gdb", small=True),
    native("zsh", "zsh", "zsh", "-c", ZSH, small=True),
    native("bash", "bash", "bash", "-c", BASH, small=True),
    native(
        "clang",
        "clang",
        "/usr/lib/llvm-14/bin/clang",
        "-cc1",
        "-triple",
        "x86_64-linux-gnu",
        "-O2",
        "-emit-obj",
        "-o",
        "/dev/null",
        "{source}",
        warm=0.5,
        small=True,
    ),
    native("busybox", "busybox", "busybox", "sh", "-c", ASH, small=True),
    native("sha512sum", "coreutils", "sh", "-c", "exec sha512sum /dev/zero", small=True),
    native(
        "ffmpeg_x264",
        "ffmpeg",
        "ffmpeg",
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=640x360:rate=30",
        "-threads",
        "1",
        "-c:v",
        "libx264",
        "-t",
        "6000",
        "-f",
        "null",
        "-",
    ),
    native(
        "ffmpeg_vp9",
        "ffmpeg",
        "ffmpeg",
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=320x180:rate=30",
        "-threads",
        "1",
        "-c:v",
        "libvpx-vp9",
        "-t",
        "6000",
        "-f",
        "null",
        "-",
    ),
    native("pari", "pari-gp", "gp", "-q", stdin=FACTOR),
    native(
        "povray", "povray", "povray", "+I{here}/scene.pov", "+W2000", "+H2000", "-D", "+O{dir}/out.png", "+A0.1", "+WT1"
    ),
    native(
        "z3",
        "z3",
        "z3",
        "-in",
        stdin=(
            "(declare-const a (_ BitVec 64))(declare-const b (_ BitVec 64))(assert (bvult a #x0000000100000000))(assert"
            " (bvult #x0000000000000001 a))(assert (bvult b #x0000000100000000))(assert (= (bvmul a b)"
            " #x7fffffe480000061))(check-sat)\n"
        ),
    ),
    native("xz", "xz-utils", "sh", "-c", "exec xz -9e -T1 -c {input} >/dev/null", repeat=True, warm=0.5, small=True),
    native("zstd", "zstd", "zstd", "-b19", "-i300", "{input}", small=True),
    native("perl", "perl", "perl", "-e", PERL, small=True),
    native(
        "gawk",
        "gawk",
        "gawk",
        "BEGIN { while (1) { for (i = 0; i < 2000; i++) a[i % 97] = a[i % 97] substr(\"some text\", i % 5, 2); n ="
        " asort(a, b); for (k in a) if (match(a[k], /o(m|x)+/)) gsub(/e t/, \"x\", a[k]); delete a } }",
    ),
    native("ruby", "ruby", "ruby", "-e", RUBY),
    native("php", "php-cli", "php", "-r", PHP),
    native("stockfish", "stockfish", "/usr/games/stockfish", "bench", "64", "1", "30"),
    native("gnugo", "gnugo", "/usr/games/gnugo", "--benchmark", "1000", "--level", "8"),
    native("node", "nodejs", "node", "--perf-basic-prof", "-e", CALLS, small=True),
    native(
        "gcc",
        "gcc",
        "/usr/lib/gcc/x86_64-linux-gnu/12/cc1",
        "-quiet",
        "-O2",
        "{source}",
        "-o",
        "/dev/null",
        repeat=True,
        warm=1,
        small=True,
    ),
    lua("markdown", "lua-markdown"),
    lua("penlight", "lua-penlight"),
    lua("lpeg", "lua-lpeg"),
    lua("cjson", "lua-cjson", small=True),
    lua("luacheck", "lua-check"),
    *(lua(name, "luajit2", small=True) for name in ("template", "rays", "coroutines", "ffi", "objects", "bits")),
    *(lua_fixture(name) for name in ("not_compiled", "collecting")),
    *(interpreted(name) for name in ("template", "rays", "coroutines", "ffi", "objects")),
    Program("lua_sysbench", "lua", ("sysbench", "{here}/sysbench.lua", "--time=300", "--threads=1", "run"), "sysbench"),
    Program("lua_nvim", "lua", ("nvim", "--headless", "-u", "NONE", "-c", "luafile {here}/nvim.lua"), "neovim"),
    Program("lua_lupa", "lua", ("{python}", "{here}/python_lupa.py")),
    *(
        puc(name, version)
        for name in ("template", "rays", "coroutines", "objects", "calls")
        for version in ("5.1", "5.2", "5.3", "5.4")
    ),
    *(
        puc(name, version, package)
        for name, package in (("penlight", "lua-penlight"), ("lpeg", "lua-lpeg"), ("cjson", "lua-cjson"))
        for version in ("5.1", "5.2", "5.3", "5.4")
    ),
    puc("markdown", "5.1", "lua-markdown"),
    puc("luacheck", "5.1", "lua-check"),
    python("numpy", env={"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}),
    Program(
        "python_numpy_zen",
        "python",
        ("{python}", "{here}/python_numpy.py"),
        env={"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Zen"},
    ),
    *(
        python(name)
        for name in (
            "gmpy2",
            "jinja2",
            "django",
            "lxml",
            "pillow",
            "sympy",
            "pandas",
            "black",
            "sqlalchemy",
            "tornado",
            "networkx",
            "pygments",
        )
    ),
    *(
        library(name)
        for name in (
            "parse",
            "tokens",
            "documents",
            "texts",
            "differences",
            "numbers",
            "database",
            "objects",
            "mails",
            "pages",
            "tests",
            "tasks",
        )
    ),
    perl("json"),
    perl("pod"),
    perl("moose", "libmoose-perl"),
    perl("dbi", "libdbd-sqlite3-perl"),
    perl("xml", "libxml-libxml-perl"),
    perl("template", "libtemplate-perl"),
    perl("futures", "libio-async-perl"),
    perl("tidy", "perltidy"),
    perl("critic", "libperl-critic-perl", warm=5),
    perl("exiftool", "libimage-exiftool-perl"),
    perl("datetime", "libdatetime-perl"),
    perl("csv", "libtext-csv-perl"),
    perl("mojo", "libmojolicious-perl"),
    perl("poe", "libpoe-perl"),
    perl("threads"),
    *(
        java(name, "openjdk-17-jdk-headless", [], "Work", name, small=True)
        for name in ("compile", "streams", "zip", "numbers", "sum", "text")
    ),
    java("locks", "openjdk-17-jdk-headless", [], "Work", "locks", options=("-Dthreads=3",), small=True),
    java("stores", "openjdk-17-jdk-headless", [], "Work", "stores", options=("-XX:+UseShenandoahGC",), small=True),
    java("natives", "openjdk-17-jdk-headless", [], "Natives", "{natives}", small=True),
    java("compile_interpreted", "openjdk-17-jdk-headless", [], "Work", "compile", options=("-Xint",), small=True),
    java(
        "streams_baseline",
        "openjdk-17-jdk-headless",
        [],
        "Work",
        "streams",
        options=("-XX:TieredStopAtLevel=1",),
        small=True,
    ),
    Program(
        "java_natives_interpreted",
        "java",
        ("{java}", "-Xint", "-cp", "{classes}", "Natives", "{natives}"),
        "openjdk-17-jdk-headless",
        warm=3,
        small=True,
    ),
    java(
        "groovy",
        "groovy",
        ["groovy-all.jar", "antlr.jar", "asm-all.jar", "commons-cli.jar"],
        "groovy.ui.GroovyMain",
        "-e",
        GROOVY,
    ),
    java(
        "jruby",
        "jruby",
        ["../jruby/lib/jruby.jar"],
        "org.jruby.Main",
        "-e",
        JRUBY,
        options=("-Djruby.home=/usr/share/jruby",),
    ),
    java(
        "jython",
        "jython",
        [
            "jython.jar",
            "guava.jar",
            "antlr3-runtime.jar",
            "asm.jar",
            "asm-commons.jar",
            "asm-util.jar",
            "jnr-posix.jar",
            "jnr-netdb.jar",
            "icu4j.jar",
            "jnr-constants.jar",
            "failureaccess.jar",
            "jffi.jar",
            "jnr-ffi.jar",
            "commons-compress.jar",
            "netty-all.jar",
        ],
        "org.python.util.jython",
        "-S",
        "-c",
        JYTHON,
        options=("-Dpython.cachedir.skip=true", "-Dpython.import.site=false"),
    ),
    java("clojure", "clojure", ["clojure.jar", "spec.alpha.jar", "core.specs.alpha.jar"], "clojure.main", "-e", QUEENS),
    java("rhino", "rhino", ["js.jar", "rhino.jar"], "org.mozilla.javascript.tools.shell.Main", "-e", CALLS),
    java("beanshell", "bsh", ["bsh.jar"], "bsh.Interpreter", "{here}/fib.bsh"),
    java(
        "scala",
        "scala",
        [
            "scala-compiler.jar",
            "scala-library.jar",
            "scala-reflect.jar",
            "scala-xml_2.11.jar",
            "scala-parser-combinators_2.11.jar",
        ],
        "scala.tools.nsc.MainGenericRunner",
        "-usejavacp",
        "-nc",
        "{here}/words.scala",
    ),
    java(
        "h2",
        "libh2-java",
        ["h2.jar"],
        "org.h2.tools.Shell",
        "-url",
        "jdbc:h2:mem:",
        "-sql",
        "create table t(a int primary key, b varchar) as select x, 'text ' || x from system_range(1, 20000); "
        "select count(*), max(t.b), sum(u.a) from t, t u where t.a > u.a and u.b like '%7%'",
    ),
    driver(
        "lucene",
        "liblucene4.10-java",
        [
            "lucene-core-4.10.4.jar",
            "lucene-analyzers-common-4.10.4.jar",
            "lucene-queryparser-4.10.4.jar",
            "lucene-queries-4.10.4.jar",
            "lucene-sandbox-4.10.4.jar",
        ],
        "Index",
    ),
    driver("bouncycastle", "libbcprov-java", ["bcprov.jar"], "Crypto"),
    driver("plantuml", "plantuml", ["../plantuml/plantuml.jar"], "Diagrams", options=("-Djava.awt.headless=true",)),
    driver("commons_math", "libcommons-math3-java", ["commons-math3.jar"], "Numerics"),
    driver("hsqldb", "libhsqldb-java", ["hsqldb.jar"], "Tables", "jdbc:hsqldb:mem:x"),
    driver("derby", "libderby-java", ["derby.jar"], "Tables", "jdbc:derby:memory:x;create=true"),
    java("abcl", "abcl", ["abcl.jar"], "org.armedbear.lisp.Main", "--noinit", "--batch", "--load", "{here}/queens.cl"),
    java("saxon", "libsaxonhe-java", ["Saxon-HE.jar"], "net.sf.saxon.Query", "-q:{here}/words.xq"),
    java(
        "ecj",
        "libeclipse-jdt-core-java",
        ["eclipse-jdt-core.jar", "commons-math3.jar"],
        "org.eclipse.jdt.internal.compiler.batch.Main",
        "-17",
        "-nowarn",
        "-proc:none",
        "-repeat",
        "1000000",
        "-d",
        "none",
        "{here}/Work.java",
        "{here}/jars/Numerics.java",
        "{here}/jars/Tables.java",
    ),
]
