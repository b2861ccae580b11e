# SPDX-License-Identifier: Apache-2.0
"""
--help, man pages and completions: each command and option is in all of them, and the shells offer them. And colours.
"""

import os
import pty
import re
import subprocess

import yrt

MANUAL = os.path.join(yrt.BUILD, "manual")


def output(*command, **kw):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **kw)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def commands():
    found = output(yrt.YRT, "help", "--list").split()
    assert {"flame", "lua-flame", "top", "doctor", "help"} <= set(found), found
    return found


def options(command):
    """[(short or None, long)] of --help."""
    text = output(yrt.YRT, command, "--help").split("options:")[1].split("examples:")[0]
    found = re.findall(r"^  (?:-(\w), |    )--([\w-]+)", text, re.M)
    assert ("h", "help") in found, text
    return found


def test_overview():
    """Each command has its row, or shares that of the one that does the same for all languages."""
    text = output(yrt.YRT, "--help")
    languages = re.search(r"LANG is one of\n(.*)\.\n", text)[1].split(", ")
    listed = set()
    for name, views in re.findall(r"^  ([a-z][\w-]*)(, LANG-\S+)? {2,}\S", text.split("examples:")[0], re.M):
        listed |= {name, *(f"{language}-{name}" for language in languages if views)}
    assert listed == set(commands()), listed ^ set(commands())


def test_misspelled():
    for wrong, meant in (
        ("lua-flam", "lua-flame"),
        ("lau-flame", "lua-flame"),
        ("flmae", "flame"),
        ("pyton-flame", "python-flame"),
        ("inspct", "inspect"),
        ("ruby-flame", "flame"),
    ):
        for words in ([wrong], ["help", wrong]):
            done = subprocess.run([yrt.YRT, *words], capture_output=True, text=True, timeout=300)
            assert done.returncode == yrt.USAGE and f"`yrt {meant}`" in done.stderr, done
    for words, meant in ((["record", "-e", "fault"], "did you mean --event?"),
                         (["record", "--event", "page-faults", "-p", "1"], "it is called fault here; ")):
        done = subprocess.run([yrt.YRT, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == yrt.USAGE and meant in done.stderr, done


def test_examples():
    """Each command shows how to use it, by examples that begin as they should."""
    for command in commands():
        text = output(yrt.YRT, command, "--help")
        assert text == output(yrt.YRT, "help", command)
        examples = re.findall(r"^  (?! )(.*)", text.split("examples:")[1], re.M)
        assert examples, f"{command} has no examples"
        assert any(re.search(rf"\byrt {command}\b", example) for example in examples), f"{command}: no example of it"
        for example in examples:
            assert re.search(rf"\byrt ({'|'.join(commands())})\b", example), f"{command}: {example}"


def page(name):
    return os.path.join(MANUAL, "man1", name)


def test_each_option_once():
    """Of two options with one letter or name only one would work."""
    for command in commands():
        for names in zip(*options(command)):
            names = [name for name in names if name]
            assert len(names) == len(
                set(names)
            ), f"{command}: {sorted(name for name in names if names.count(name) > 1)}"


def test_width():
    """Help fits into a terminal of 110 columns; JSON and formats are not wrapped."""
    for command in commands():
        for line in output(yrt.YRT, command, "--help").splitlines():
            assert len(line) <= 110, f"{command}: {line}"


def test_pages():
    plain = {**os.environ, "MANPAGER": "cat", "MANWIDTH": "200"}
    whole = output("man", "-E", "ascii", "-l", page("yrt.1"), env=plain)
    for heading in ("EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"):
        assert re.search(f"^{heading}", whole, re.M), f"yrt.1: no {heading}"
    for name in ("XDG_CACHE_HOME", "TMPDIR", "YRT_CACHE_DIR", "YRT_CACHE_MB", "YRT_LAYOUTS", "YRT_PUSH_URL",
                 "YRT_PUSH_USER", "YRT_PUSH_TOKEN", "DEBUGINFOD_URLS", "NO_COLOR"):
        assert re.search(rf"^ .*\b{name}\b", whole, re.M), f"yrt.1: no {name}"
    for command in commands():
        assert re.search(rf"yrt-{command}\b", whole), f"yrt.1 does not name {command}"
        text = output("man", "-E", "ascii", "-l", page(f"yrt-{command}.1"), env=plain)
        for short, long in options(command):
            assert re.search(
                rf"^ +{f'-{short}, ' if short else ''}--{long}\b", text, re.M
            ), f"yrt-{command}.1: no --{long}"
        for heading in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "SEE ALSO"):
            assert re.search(f"^{heading}", text, re.M), f"yrt-{command}.1: no {heading}"


def test_pages_are_sound():
    for name in sorted(os.listdir(os.path.join(MANUAL, "man1"))):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page(name)], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout, done.stdout
        done = subprocess.run(
            ["man", "--warnings", "-E", "utf8", "-l", "-Tutf8", "-Z", page(name)], capture_output=True, text=True
        )
        assert done.returncode == 0 and not done.stderr, f"{name}: {done.stderr}"


def bash(*words):
    """What bash would offer for the last of these words."""
    script = (f"source {MANUAL}/bash/yrt; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
              f"COMP_CWORD={len(words) - 1}; _yrt; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return output("bash", "-c", script).split("\n")[:-1]


@yrt.measured
def test_bash():
    assert set(commands()) <= set(bash("yrt", ""))
    assert bash("yrt", "lua-fl") == ["lua-flame"]
    for command in commands():
        offered = bash("yrt", command, "-")
        missing = [long for _, long in options(command) if f"--{long}" not in offered]
        missing += [short for short, _ in options(command) if short and f"-{short}" not in offered]
        assert not missing, f"{command}: {missing}"
    assert str(os.getpid()) in bash("yrt", "flame", "-p", str(os.getpid()))
    assert "html" in bash("yrt", "flame", "-f", "h")
    assert bash("yrt", "flame", "-d", "") == [""], "a number is completed"
    assert "python3" in bash("yrt", "flame", "--", "python")


def test_zsh():
    text = yrt.read(os.path.join(MANUAL, "zsh", "_yrt"))
    output("zsh", "-n", os.path.join(MANUAL, "zsh", "_yrt"))
    for command in commands():
        part = re.search(rf"^\t{command}\)\n(.*?)^\t\t;;", text, re.M | re.S)
        assert part and f"'{command}:" in text, f"no {command}"
        for short, long in options(command):
            assert re.search(rf"'--{long}[=\[]", part[1]), f"{command}: no --{long}"
            assert not short or re.search(rf"'-{short}[+\[]", part[1]), f"{command}: no -{short}"


def fish(line):
    """What fish would offer behind this line. It takes yrt's completions only where there is a yrt."""
    environment = {
        **os.environ,
        "HOME": os.path.join(yrt.BUILD, "fish"),
        "PATH": os.path.dirname(yrt.YRT) + ":" + os.environ["PATH"],
    }
    rows = output(
        "fish", "-N", "-c", f"source {MANUAL}/fish/yrt.fish; complete -C {line!r}", env=environment
    ).splitlines()
    return {row.split("\t")[0] for row in rows}


@yrt.measured
def test_fish():
    assert set(commands()) <= fish("yrt ")
    for command in commands():
        offered = fish(f"yrt {command} --")
        missing = [long for _, long in options(command) if f"--{long}" not in offered and f"--{long}=" not in offered]
        assert not missing, f"{command}: {missing}"


def on_terminal(*command, **env):
    """What a command writes to a terminal."""
    main, other = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(
        command, stdin=other, stdout=other, stderr=other, env={**environment, "TERM": "xterm", **env}
    )
    os.close(other)
    text = b""
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:
        pass  # the other end is closed
    os.close(main)
    process.wait(30)
    return text.decode()


def test_colours():
    """On a terminal, unless NO_COLOR is set; never elsewhere."""
    for command in (["--help"], ["flame", "--help"], ["doctor"], ["flame"]):
        assert "\033[" in on_terminal(yrt.YRT, *command), f"{command}: no colour on a terminal"
        assert "\033[" not in on_terminal(yrt.YRT, *command, NO_COLOR="1"), f"{command}: NO_COLOR is ignored"
        assert "\033[" not in on_terminal(yrt.YRT, *command, TERM="dumb"), f"{command}: colours on a dumb terminal"
        assert "\033[" in on_terminal(yrt.YRT, *command, NO_COLOR=""), f"{command}: an empty NO_COLOR counts"
        done = subprocess.run([yrt.YRT, *command], capture_output=True, text=True)
        assert "\033" not in done.stdout + done.stderr, f"{command}: colours in a pipe"


def test_usage_errors():
    for command in commands():
        done = subprocess.run([yrt.YRT, command, "--nonsense"], capture_output=True, text=True)
        assert done.returncode == yrt.USAGE and "--help" in done.stderr, f"{command}: {done.returncode} {done.stderr}"
    for words in (["nonsense"], ["help", "nonsense"], ["help", "--completion", "tcsh"], ["help", "flame", "top"]):
        done = subprocess.run([yrt.YRT, *words], capture_output=True, text=True)
        assert done.returncode == yrt.USAGE and done.stderr.startswith("yrt: "), done.stderr


yrt.main(globals())
