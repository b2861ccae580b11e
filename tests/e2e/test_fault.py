# SPDX-License-Identifier: Apache-2.0
"""
fault-flame: every page fault that the kernel counts, in the function that touched the page, with the kind of memory
that it touched.
"""

import re

import yrt

KINDS = {
    "touch_anonymous": "anonymous memory",
    "touch_shared": "shared memory",
    "touch_file": "file",
    "touch_heap": "heap",
    "touch_stack": "stack",
    "touch_in_kernel": "anonymous memory",
}


def whole(*args, pages=2000):
    with yrt.Fixture("faults", pages) as fixture:
        at = yrt.Run("fault-flame", "-p", fixture.pid, "-d", 600, "--max-cpu", 0, *args).sampling()
        fixture.release()
        truth = fixture.finish()
        return at.result().expect(), truth


def test_counts():
    """Each function has its faults, all of the right kind; and in all there are as many as the kernel counted."""
    result, truth = whole()
    for name, kind in KINDS.items():
        of = [(frames, n) for frames, n in result.stacks if name in frames]
        right = sum(n for frames, n in of if frames[-1] == f"[page fault: {kind}]")
        counted = truth["faults"][name]
        assert (
            counted >= 1000 and abs(right - counted) <= 2 + 0.002 * counted
        ), f"{name}: {right} of {counted}\n{yrt.show(of)}"
        yield f"{name}: {right} of {counted}"
    stats = result.stats
    assert stats["event"] == "fault" and stats["unit"] == "faults", stats
    assert truth["all"] <= stats["samples"] == stats["expected_samples"], stats
    assert "faults of" in result.stderr, result.stderr


def test_kernel_frames():
    """Pages that the kernel touches for the program have its frames, unless they are not wanted."""
    result, _ = whole(pages=1000)
    of = [(frames, n) for frames, n in result.stacks if "touch_in_kernel" in frames]
    assert any(
        re.search("pread64|read", f) for frames, _ in of for f in frames[frames.index("touch_in_kernel") + 2 :]
    ), yrt.show(of)
    result, _ = whole("-U", pages=1000)
    of = [(frames, n) for frames, n in result.stacks if "touch_in_kernel" in frames]
    assert of and not any(re.search("ksys|do_syscall|copy_to", f) for frames, _ in of for f in frames), yrt.show(of)


def test_command():
    """From the exec of a command to its end, also where children are born and die."""
    result = yrt.run("fault-flame", "-s", "--max-cpu", 0, "--", "/bin/sh", "-c", "/bin/true; /bin/true; :").expect()
    stats = result.stats
    assert stats["samples"] > 100 and 0 <= stats["expected_samples"] - stats["samples"] <= 10, stats


@yrt.measured
def test_languages():
    """The Python function that makes memory, and none of its interpreter's frames."""
    code = "def make():\n return [bytearray(1 << 16) for _ in range(400)]\nwhile True: make()"
    result = yrt.run("python-fault-flame", "-d", 2, "--", "/usr/bin/python3", "-c", code).expect()
    assert result.share(re.compile(r"^make \(")) > 0.5, yrt.show(result.stacks)
    assert not result.share("_PyEval_EvalFrameDefault"), yrt.show(result.stacks)


yrt.main(globals())
