# SPDX-License-Identifier: Apache-2.0
"""record, render, diff: what is kept, that it can be drawn without the machine it came from, and files that are bad."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

import yrt


def plain(*args, code=yrt.OK, **kw):
    result = yrt.run(*args, output=False, stats=False, **kw)
    return result if code is None else result.expect(code)


def folded(path, *flags):
    return yrt.parse_folded(plain("render", path, "-o", "-", *flags).stdout)


def share(stacks, frame):
    return sum(n for f, n in stacks if yrt.has(f, frame)) / max(sum(n for _, n in stacks), 1)


@contextlib.contextmanager
def recorded(program, *flags, seconds=1, rate=999, argument=()):
    """x.yrt of a program, and the result of the command."""
    with tempfile.TemporaryDirectory() as directory, yrt.Fixture(program, *argument) as fixture:
        path = os.path.join(directory, "x.yrt")
        at = yrt.Run(
            "record", "-p", fixture.pid, "-d", 600, "-F", rate, "-o", path, *flags, output=False
        ).sampling()
        fixture.release()
        yrt.busy_for([fixture.pid], seconds)
        at.interrupt()
        yield path, at.result().expect()


@yrt.measured
def test_everything_is_kept():
    """All samples that were taken, the threads, the loss line."""
    with recorded("threads", argument=(3,)) as (path, result):
        without, with_threads = folded(path), folded(path, "-t")
        text = plain("render", path, "-f", "txt", "-o", "-").stdout
    assert sum(n for _, n in without) == sum(n for _, n in with_threads) == result.stats["samples"], result.stats
    assert not any("tid" in f for f, _ in without)
    for n in range(3):
        assert 0.1 < share(with_threads, re.compile(rf"^worker-{n} \(tid \d+\)$")) < 0.6, yrt.show(with_threads)
    assert yrt.alone(result.stderr)[-1].removeprefix("yrt: ") in text, text[:600]


@yrt.measured
def test_filters_afterwards():
    """Filters of a recording do what those of sampling do."""
    with recorded("syscalls") as (path, _):
        whole, user, kernel = folded(path), folded(path, "-U"), folded(path, "-K")
        only, without = folded(path, "-I", "^ask$"), folded(path, "-X", "^ask$")
    samples = sum(n for _, n in whole)
    syscall = re.compile(r"^(do_syscall_64|entry_SYSCALL_64\w*|__x64_sys_\w+|vfs_read|ksys_read)")
    assert share(whole, syscall) > 0.3, yrt.show(whole)
    assert share(user, syscall) == 0 and share(user, "zero") == share(whole, "zero") > 0.4, yrt.show(user)
    assert share(kernel, syscall) == share(whole, syscall) and share(kernel, "main") == 0, yrt.show(kernel)
    assert sum(n for _, n in user) == sum(n for _, n in kernel) == samples
    assert only and all("ask" in f for f, _ in only) and not any("ask" in f for f, _ in without)
    assert sum(n for _, n in only) + sum(n for _, n in without) == samples


def test_a_thread_afterwards():
    with recorded("threads", argument=(3,)) as (path, _):
        whole, one = folded(path, "-t"), folded(path, "-I", "^worker-1 ")
    wanted = [(frames[1:], n) for frames, n in whole if frames[0].startswith("worker-1 ")]
    assert sorted(one) == sorted(wanted) and wanted, yrt.show(one)


@yrt.measured
def test_elsewhere():
    """Drawn by nobody, when neither the process nor its program is there any more."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program, path = os.path.join(directory, "program"), os.path.join(directory, "x.yrt")
        shutil.copy(yrt.fixture_path("deep30"), program)
        plain("record", "-d", 30, "-F", 999, "-o", path, "--", program, 1)
        os.remove(program)
        os.chmod(path, 0o644)
        with yrt.nobody() as words:
            stacks = yrt.parse_folded(plain("render", path, "-o", "-", cwd="/", **words).stdout)
    assert sum(n for _, n in stacks) > 30 and share(stacks, "f17") > 0.3, yrt.show(stacks)


# Half a second of CPU time, and nothing on stdout.
BRIEF = "sh", "-c", f"FIXTURE_CPU=1 exec {yrt.fixture_path('deep30')} 0.5 >/dev/null"


def test_pipe():
    """From one yrt into another."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.svg")
        record = subprocess.Popen(
            [yrt.YRT, "record", "-F", "999", "-q", "-o", "-", "-f", "yrt", "--", *BRIEF],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        render = subprocess.run([yrt.YRT, "render", "-", "-o", path], stdin=record.stdout, timeout=300)
        record.stdout.close()
        assert record.wait(300) == 0 and render.returncode == 0
        assert ">f17" in yrt.read(path) and yrt.read(path).endswith("</svg>\n")


def test_interrupt():
    with yrt.Fixture("deep30") as fixture, tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.yrt")
        at = yrt.Run("record", "-p", fixture.pid, "-d", 600, "-F", 999, "-o", path, output=False).sampling()
        fixture.release()
        yrt.busy_for([fixture.pid], 0.2)
        at.interrupt()
        result = at.result(timeout=300).expect()
        stacks = folded(path)
    assert sum(n for _, n in stacks) == result.stats["samples"] > 5


@yrt.measured
def test_default_name():
    with tempfile.TemporaryDirectory() as directory:
        plain("record", "-F", 999, "--", yrt.fixture_path("deep30"), 1, cwd=directory)
        assert os.listdir(directory) == ["record.yrt"], os.listdir(directory)
        assert share(folded(os.path.join(directory, "record.yrt")), "f17") > 0.3


def test_redrawn_is_equal():
    """A recording of a recording is the same file."""
    with recorded("deep30") as (path, _):
        again = path + ".yrt"
        plain("render", path, "-o", again)
        with open(path, "rb") as a, open(again, "rb") as b:
            assert a.read() == b.read()


def test_tiers():
    """A function that was compiled in several ways is drawn once, unless it is asked for."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.folded")
        with open(path, "w") as f:
            f.write("a;Q.main_[0];Q.run_[0] 1\na;Q.main_[j];Q.run_[i] 4\na;Q.main_[1];Q.run_[0] 2\n")
        assert folded(path) == [(["a", "Q.main", "Q.run"], 7)], folded(path)
        apart = {tuple(frames[1:]): n for frames, n in folded(path, "--annotate")}
        assert apart == {
            ("Q.main_[0]", "Q.run_[0]"): 1,
            ("Q.main_[j]", "Q.run_[i]"): 4,
            ("Q.main_[1]", "Q.run_[0]"): 2,
        }, apart


def test_diff():
    with tempfile.TemporaryDirectory() as directory:
        a = yrt.made(directory, "a.yrt", "main;same 50\nmain;gone 50\n")
        b = yrt.made(directory, "b.yrt", "main;same 5\nmain;new 15\n")
        out = plain("diff", a, b, "-o", "-").stdout
        raw = plain("diff", a, b, "-o", "-", "--raw").stdout
        tree = plain("diff", a, b, "-f", "txt", "-o", "-").stdout
        page = os.path.join(directory, "d.html")
        plain("diff", a, b, "-o", page)
        html = yrt.read(page)
    assert sorted(out.splitlines()) == ["main;gone 50 0", "main;new 0 75", "main;same 50 25"], out
    assert sorted(raw.splitlines()) == ["main;gone 50 0", "main;new 0 15", "main;same 50 5"], raw
    assert re.search(r"50\.00 +0\.00 +-50\.00 .*gone", tree) and re.search(r"0\.00 +75\.00 +\+75\.00 .*new", tree), tree
    assert '"base":[' in html and "a.yrt: 100 samples" in html


def test_diff_of_folded_and_recording():
    """Folded stacks of anybody against a recording of ours: equal stacks are equal."""
    with recorded("deep30") as (path, _):
        plain("render", path, "-o", path + ".folded")
        lines = plain("diff", path + ".folded", path, "-o", "-").stdout.splitlines()
    assert lines and all(re.fullmatch(r".+ (\d+) \1", line) for line in lines), lines[:3]


def test_diff_of_two_programs():
    with recorded("deep30") as (a, _), recorded("split") as (b, _):
        lines = plain("diff", a, b, "-o", "-").stdout.splitlines()
        svg = plain("diff", a, b, "-f", "svg", "-o", "-").stdout
    gone = [line for line in lines if "f17" in line]
    assert gone and all(line.endswith(" 0") for line in gone), lines[:3]
    assert 'class="gone"' in svg and ">f17" in svg


def expect_error(code, *args, words=()):
    err = plain(*args, code=code).stderr
    assert err.startswith("yrt: ") and all(word in err for word in words), (args, err)
    return err


def test_bad_files():
    with tempfile.TemporaryDirectory() as directory:
        good = yrt.made(directory, "good.yrt", "main;a 3\n")
        with open(good, "rb") as f:
            data = f.read()

        def bad(name, content):
            path = os.path.join(directory, name)
            with open(path, "wb") as f:
                f.write(content)
            return path
        newer = bad("newer.yrt", data[:8] + b"\x09" + data[9:])
        expect_error(yrt.INPUT, "render", newer, "-o", "-", words=(newer, "version 9", "version 1", "newer"))
        flipped = bad("flipped.yrt", data[:90] + bytes([data[90] ^ 1]) + data[91:])
        expect_error(yrt.INPUT, "render", flipped, "-o", "-", words=(flipped, "corrupt"))
        expect_error(yrt.INPUT, "diff", good, flipped, "-o", "-", words=(flipped, "corrupt"))
        for name, content in (
            ("text.yrt", b"hello world\n"),
            ("short.yrt", data[:12]),
            ("elf.yrt", b"\x7fELF" + bytes(99)),
            ("bits.yrt", os.urandom(5000)),
        ):
            path = bad(name, content)
            expect_error(yrt.INPUT, "render", path, "-o", "-", words=(path,))
        expect_error(
            yrt.INPUT, "render", os.path.join(directory, "none.yrt"), "-o", "-", words=("none.yrt", "No such file")
        )
        expect_error(yrt.INPUT, "render", directory, "-o", "-", words=(directory,))


@yrt.measured
def test_cut_short():
    """What is whole is shown, what is missing is counted, and more than half missing changes the exit code."""
    stacks = "".join(f"main;f{i % 997};g{i} 1\n" for i in range(300000))
    with tempfile.TemporaryDirectory() as directory:
        path = yrt.made(directory, "x.yrt", stacks, "loss=none lost")
        with open(path, "rb") as f:
            data = f.read()
        for part, code in ((0.95, yrt.OK), (0.2, yrt.LOST)):
            with open(path, "wb") as f:
                f.write(data[:int(len(data) * part)])
            out = plain("render", path, "-o", "-", code=code)
            lines = yrt.parse_folded(out.stdout)
            missing = sum(n for f, n in lines if f == ["[recording cut short]"])
            assert sum(n for _, n in lines) == 300000 and 0 < missing, missing
            assert (missing > 150000) == (part < 0.5), (part, missing)
            assert re.search(rf"note: .*x\.yrt is cut short: {missing} samples", out.stderr), out.stderr


@contextlib.contextmanager
def small_disk(kilobytes):
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", directory], check=True)
        try:
            yield directory
        finally:
            subprocess.run(["umount", directory], check=True)


def test_disk_full():
    """An error that names the file; what was written can be read."""
    stacks = "".join(f"main;f{i % 997};g{i} 1\n" for i in range(300000))
    with tempfile.TemporaryDirectory() as directory, small_disk(512) as full:
        whole, path = yrt.made(directory, "x.yrt", stacks), os.path.join(full, "x.yrt")
        assert os.path.getsize(whole) > 600 << 10, os.path.getsize(whole)
        for extension in ("yrt", "html", "svg", "json", "folded"):
            out = os.path.join(full, "x." + extension)
            if extension == "svg":
                out = "/dev/full"
            err = expect_error(
                yrt.OUTPUT, "render", whole, "-o", out, "-f", extension.replace("json", "speedscope"), words=(out,)
            )
            assert "No space left" in err, err
            assert (
                extension == "yrt" or out == "/dev/full" or not os.path.exists(out)
            ), f"{out} is incomplete, and there"
            if extension == "yrt":
                shutil.copy(path, os.path.join(directory, "part.yrt"))
                os.remove(path)
        lines = yrt.parse_folded(plain("render", os.path.join(directory, "part.yrt"), "-o", "-", code=None).stdout)
    assert sum(n for _, n in lines) == 300000 and any(f[-1].startswith("g") for f, _ in lines), lines[:3]


def test_disk_full_while_recording():
    with yrt.Fixture("deep30") as fixture:
        fixture.release()
        err = expect_error(
            yrt.OUTPUT, "record", "-p", fixture.pid, "-d", 1, "-o", "/dev/full", "-f", "yrt", words=("/dev/full",)
        )
    assert "No space left" in err, err


def test_usage():
    with tempfile.TemporaryDirectory() as directory:
        path = yrt.made(directory, "x.yrt", "main 3\n")
        for args, words in (
            (("render", path), ("-o",)),
            (("render", "-o", "-"), ("one file",)),
            (("render", path, path, "-o", "-"), ()),
            (("render", path, "-o", "x.png"), ("x.png", "--help")),
            (("render", path, "-o", "-", "-U", "-K"), ("-U",)),
            (("render", path, "-o", "-", "-I", "("), ("(",)),
            (("diff", path, "-o", "-"), ("two files",)),
            (("diff", path, path, "-o", "x.otlp"), ("otlp", "difference")),
            (("diff", "-", "-", "-o", "-"), ("stdin",)),
            (("render", path, "-o", "-", "--nonsense"), ()),
        ):
            expect_error(yrt.USAGE, *args, words=words) if args[-1] != "--nonsense" else plain(*args, code=yrt.USAGE)
        expect_error(
            yrt.OUTPUT, "render", path, "-o", "/nonexistent/x.html", words=("/nonexistent/x.html", "No such file")
        )
        for command in ("record", "render", "diff"):
            assert command in plain(command, "--help").stdout


def test_stdout_gets_a_recording():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.yrt")
        with open(path, "wb") as out:
            subprocess.run([yrt.YRT, "record", "-q", "-o", "-", "--", *BRIEF], stdout=out, check=True, timeout=300)
        result = yrt.run("render", path, "-f", "folded", "-o", "-", output=False, stats=False).expect()
        assert "f01" in result.stdout, result.stdout


def test_hangup():
    """It ends a run with what there is, but not one that nohup has started."""
    with yrt.Fixture("deep30", wait=False) as fixture:
        for prefix in ((), ("nohup",)):
            run = yrt.Run("record", "-p", fixture.pid, "-d", 600, prefix=prefix).sampling()
            run.process.send_signal(signal.SIGHUP)
            if prefix:
                ignored = int(re.search(r"SigIgn:\t(\w+)", yrt.read(f"/proc/{run.process.pid}/status"))[1], 16)
                assert ignored & 1 << signal.SIGHUP - 1, hex(ignored)
                run.interrupt()
            run.result().expect()


yrt.main(globals())
