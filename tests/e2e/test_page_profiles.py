# SPDX-License-Identifier: Apache-2.0
"""
Pages of special profiles in headless Chromium: threads, approximate frames, trunks, differences, calls; the menu of a
frame, and the files that a page gives.
"""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

from page import (MKPROFILE, NODE, STACKS, assert_quiet, click, equal, main, make_page, names, pixels, rect, settled,
                  table, zoomed)


def test_tiers(b, directory):
    """A method that was seen interpreted and compiled is one frame, and its tip shows how much of it was what."""
    b.open(
        make_page(
            directory,
            "main;Q.run|script|hotspot;a 1\nmain;Q.run|jit|hotspot;a 6\nmain;Q.run|baseline|hotspot 3\n",
            "tiers.html",
        )
    )
    equal(b.run("return [...tree.fn].map(nameOf)"), ["all", "main", "Q.run", "a"], "frames")
    r = rect(b, "Q.run")
    b.mouse(r["x"] + 5, r["y"] + 9)
    assert b.wait("!tip.hidden")
    equal(b.text("#tip p"), "C2 60 %, C1 30 %, interpreted 10 % \u00b7 hotspot", "facts in the tip")
    equal(b.run("return data.kinds[kindOf(tree.fn[2])]"), "jit", "what most of it is")
    assert_quiet(b)


def test_approximate(b, directory):
    """A method and the same method marked approximate are one frame, also where folding a kind brings them together."""
    f, approx = "Q.f|jit|hotspot", "Q.f|jit|hotspot|||4"
    b.open(make_page(directory, f"main;{f};a 2\nmain;{approx} 7\nmain;s|stub;{f} 5\n", "approximate.html"))
    equal(
        b.run("return [...tree.fn].map((f) => marksOf(f) + nameOf(f))"),
        ["all", "main", "~ Q.f", "a", "s", "Q.f"],
        "frames",
    )
    r = rect(b, "Q.f", 2)
    b.mouse(r["x"] + 5, r["y"] + 9)
    assert b.wait("tip.textContent.includes('of all its samples 50 % are approximate')"), b.text("#tip")
    b.run("toggleKind(data.kinds.indexOf('stub'), false)")
    equal(
        b.run("return [...tree.fn].map((f, i) => marksOf(f) + nameOf(f) + tree.total[i])"),
        ["all14", "main14", "Q.f14", "a2"],
        "folded",
    )
    assert_quiet(b)


def saved(b, directory, kind):
    """What the page gives as a file."""
    before = set(os.listdir(directory))
    b.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=directory)
    b.click("#export summary")
    assert b.wait(
        """[...document.querySelectorAll("#export button")].every((e) => {
        const r = e.getBoundingClientRect();
        return document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2) === e; })"""
    ), "the menu can not be seen"
    b.click("#export button[value=%s]" % kind)
    for _ in range(5000):
        new = [
            n
            for n in set(os.listdir(directory)) - before
            if not n.endswith((".crdownload", ".tmp")) and not n.startswith(".")
        ]
        content = Path(directory, new[0]).read_bytes() if new else b""
        if content:  # the name may be there before what the file holds
            Path(directory, new[0]).unlink()
            return new[0], content
        time.sleep(0.02)
    raise AssertionError("no %s came: %s" % (kind, os.listdir(directory)))


def test_export(b, directory):
    url = make_page(directory, STACKS)
    out = tempfile.mkdtemp(dir=directory)
    b.open(url)
    name, text = saved(b, out, "folded")
    equal(name, "lua-flame-nginx-pid-42.folded", "name of the file")
    want = subprocess.run([MKPROFILE, "folded"], input=STACKS.encode(), stdout=subprocess.PIPE, check=True).stdout
    equal(text, want, "folded stacks, as yrt writes them")
    b.run("zoomTo(" + NODE + ")", "do_syscall_64")
    equal(saved(b, out, "folded")[1], b"main;loop;do_syscall_64 5\n", "folded stacks of what is zoomed to")
    b.keys("Escape")
    name, text = saved(b, out, "svg")
    root = ElementTree.fromstring(text)
    shown = "".join(root.itertext())
    for word in (
        "lua-flame",
        "nginx (pid 42)",
        "20 samples, 1 lost",
        "yrt lua-flame -p 42",
        "handler (app.lua:42)",
        "kernel 25.0%",
    ):
        assert word in shown, "%s is not in the SVG" % word
    fills = [float(e.get("width")) for e in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(fills) > 9 and max(fills) == 1400, fills
    name, png = saved(b, out, "png")
    size = pixels(b, png)
    assert size[0] == 2800 and size[1] > 400, size
    assert b.run("return [...Array(size[1]).keys()].filter((y) => row(y) > 3).length") > 150, "an empty picture"
    b.open(
        make_page(
            directory,
            "%3c/text%3e%3cscript%3ealert(1)%3c/script%3e%01%ff;a%3bb%0ac 1\n",
            "evil.html",
            title="</svg>&'\"",
        )
    )
    assert ElementTree.fromstring(saved(b, out, "svg")[1]) is not None
    equal(
        saved(b, out, "folded")[1].decode(),
        "</text><script>alert(1)</script> \ufffd;a:b c 1\n",
        "names in folded stacks",
    )
    assert_quiet(b)


THREADS = """\
worker-1 (tid 7)|thread;main;a 3
worker-2 (tid 8)|thread;main;a 1
worker-2 (tid 8)|thread;main;b 2
other (tid 9)|thread;main;a 4
"""


def test_threads(b, directory):
    b.open(make_page(directory, THREADS, "threads.html"))
    equal(len(settled(b)), 7, "frames of three threads")
    b.click("#legend button.group")
    equal(
        settled(b),
        {"all@0", "worker-# (2 threads)@1", "other (tid 9)@1", "main@2", "a@3", "b@3"},
        "threads of one name as one",
    )
    equal(b.run("return tree.total[" + NODE + "]", "worker-# (2 threads)", 1), 6, "samples of the group")
    assert "threads=grouped" in b.run("return location.hash")
    b.run("zoomTo(" + NODE + ")", "worker-# (2 threads)", 1)
    b.click("#legend button.group")
    equal(b.run("return nameOf(tree.fn[zoom])"), "worker-1 (tid 7)", "what is zoomed to, apart again")
    b.open("about:blank")
    b.open(make_page(directory, "main (tid 1)|thread;a 1\n", "one.html"))
    equal(b.run("return document.querySelectorAll('.group').length"), 0, "a button to group one thread")


TRUNK = """\
_start;__libc_start_main;main;cycle;events;handler (a.lua:1)|script|luajit|/srv/a.lua|1;escape:7|jit|luajit|/srv/a.lua|7 60
_start;__libc_start_main;main;cycle;events;handler (a.lua:1)|script|luajit|/srv/a.lua|1;render|jit|luajit|/srv/a.lua|9;escape:8|jit|luajit|/srv/a.lua|8 20
_start;__libc_start_main;main;cycle;events;idle 16
[truncated: stack]|unknown 4
"""


DEEP = "".join(f"up{i}|script|python|/srv/a.py|{i};" for i in range(20))
SERVER = f"_start;main;run;{DEEP}serve;parse 60\n_start;main;run;{DEEP}serve;send 39\n_start;main;end 1\n"


def test_long_trunk(b, directory):
    """Many rows of a language that nearly all samples share are folded, too; few stay."""
    for profile, wanted, last in ((SERVER, 23, "serve"), (SERVER.replace(DEEP, DEEP[: DEEP.index("up5")]), 3, "up0")):
        b.open("about:blank")
        b.open(make_page(directory, profile, "long.html"))
        settled(b)
        got = b.run("return [foldedRows(), nameOf(plain.fn[trunkEnd])]")
        equal(got, [wanted, last], "rows folded, the last")


def test_trunk(b, directory):
    """The rows that most stacks share are one, which opens; what differs is in view, and nothing is lost."""
    url = make_page(directory, TRUNK, "trunk.html")
    b.open("about:blank")
    b.open(url)
    settled(b)
    equal(b.run("return [foldedRows(), rows]"), [4, 6], "rows folded, rows drawn")
    equal(
        b.run("return trunkText()"),
        "\u22ef 4 rows that 96.0% of samples share: _start \u203a __libc_start_main \u203a main \u203a cycle",
        "what the handle says",
    )
    assert rect(b, "all")["y"] - rect(b, "events")["y"] == 2 * 19, "the last shared row is not above the handle"
    equal(
        b.run("const r = " + "rectOf(" + NODE + "); return nodeAt(r.x + 5, r.y + 5) === " + NODE, "render"),
        True,
        "a frame above",
    )
    r = rect(b, "all")
    b.mouse(r["x"] + 50, r["y"] - 9)
    assert b.run("return tip.hidden"), "a tip of what is folded"
    b.mouse(r["x"] + 50, r["y"] - 9, click=True)
    equal(b.run("return [foldedRows(), location.hash]"), [0, "#rows=all"], "a click on the handle opens the rows")
    assert rect(b, "all")["y"] - rect(b, "main")["y"] == 3 * 19
    b.keys("r")
    equal(b.run("return [foldedRows(), location.hash]"), [4, ""], "a key folds them again")
    b.run("zoomTo(" + NODE + ")", "main")
    equal(b.run("return foldedRows()"), 0, "folded while zoomed to one of them")
    b.keys("Escape")
    b.keys("Up", "Up")
    equal(b.run("return [nameOf(tree.fn[chosen]), foldedRows()]"), ["_start", 0], "keys reach them")
    b.keys("Escape", "r", "t")
    assert {"main", "cycle", "_start"} <= set(names(b)), "the table lacks folded rows"
    b.keys("f")
    out = tempfile.mkdtemp(dir=directory)
    assert b"cycle</text>" in saved(b, out, "svg")[1], "the picture lacks folded rows"
    equal(b.run("return foldedRows()"), 4, "folded after the export")
    b.open(make_page(directory, "a;b;c;d;e;f 10\n", "pole.html"))
    equal(b.run("return foldedRows()"), 0, "folded where there is nothing above")
    assert_quiet(b)


def context(b, name, depth=None):
    """Opens the menu of a frame and gives what it offers."""
    r = rect(b, name, depth)
    b.run(
        "canvas.dispatchEvent(new MouseEvent('contextmenu', {bubbles: true, cancelable: true, clientX: arguments[0],"
        " clientY: arguments[1]}))",
        r["x"] + 3,
        r["y"] + 9,
    )
    return b.run("return $('menu').hidden ? [] : [...$('menu').querySelectorAll('button')].map((e) => e.textContent)")


def pick(b, start):
    b.run(
        "[...$('menu').querySelectorAll('button')].find((e) => e.textContent.startsWith(arguments[0])).click()", start
    )


def test_menu(b, directory):
    """A frame's menu: only, without, hidden, copied; what is left out is said, kept in the address, and undone."""
    url = make_page(directory, STACKS, "menu.html")
    b.open("about:blank")
    b.open(url)
    settled(b)
    equal(len(context(b, "lj_str_new")), 8, "entries")
    pick(b, "Only stacks")
    equal(
        settled(b),
        {"all@0", "main@1", "loop@2", "handler (app.lua:42)@3", "lj_str_new@4", "escape@5"},
        "only stacks with it",
    )
    equal(b.run("return tree.total[0]"), 2, "samples left")
    equal(b.text("#filters"), "only lj_str_new10.0% of all is left", "what is said")
    assert "focus=%3Dlj_str_new" in b.run("return location.hash")
    b.run("location.reload()")
    assert b.wait(
        "document.readyState === 'complete' && typeof tree === 'object' && tree.total[0] === 2"
    ), "the address does not keep it"
    b.click("#filters button")
    equal([b.run("return [tree.total[0], location.hash]")], [[20, ""]], "undone")
    context(b, "do_syscall_64")
    pick(b, "Without")
    equal(b.run("return [tree.total[0], [...tree.fn].map(nameOf).includes('do_syscall_64')]"), [15, False], "without")
    context(b, "handler (app.lua:42)")
    pick(b, "Hide")
    # 6 + 2 + 4 of escape are directly below loop now, but for those of lj_str_new.
    equal(b.run("return [tree.total[0], tree.total[" + NODE + "]]", "escape", 3), [15, 10], "hidden")
    b.run("choose(-1)")
    b.keys("Escape")
    equal(b.run("return [filters.length, tree.total[0]]"), [1, 15], "Escape undoes the last")
    b.keys("Escape")
    b.run("search('^escape|^lj_')")
    b.click("#found button[value=hide]")
    equal(
        b.run("return [tree.total[0], tree.self[" + NODE + "]]", "handler (app.lua:42)"), [20, 12], "hidden by a search"
    )
    b.run("setFilters([]); search('')")
    b.devtools("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    paste = (
        "copied = undefined; navigator.clipboard.readText().then((s) => window.copied = s, (e) => window.copied ="
        " String(e))"
    )
    context(b, "escape", 5)
    pick(b, "Copy stack")
    b.run("window.copied = ''; setTimeout(() => { window." + paste + " }, 100)")
    assert b.wait("window.copied"), "no clipboard"
    equal(b.run("return copied.split('\\n')"), ["main", "loop", "handler (app.lua:42)", "escape", "escape"], "copied")
    b.run("canvas.focus()")
    b.keys("Up", "m")
    equal(b.run("return document.activeElement.textContent"), "Search for it", "the menu of the root, by a key")
    b.keys("Escape")
    equal(b.run("return $('menu').hidden"), True, "Escape closes the menu")
    assert_quiet(b)


def test_lens(b, directory):
    """Ctrl and the wheel make what is under the mouse wider, and it stays there."""
    b.open(make_page(directory, STACKS, "lens.html"))
    settled(b)
    before = rect(b, "do_syscall_64")
    x = before["x"] + before["width"] / 2
    turn = """canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ctrlKey: arguments[0], clientX: arguments[1],
        clientY: arguments[2], deltaX: arguments[3], deltaY: arguments[4] }))"""
    for _ in range(3):
        b.run(turn, True, x, before["y"] + 5, 0, -200)
    after = rect(b, "do_syscall_64")
    assert after["width"] > 2 * before["width"] and after["x"] < x < after["x"] + after["width"], (before, after)
    start = b.run("return span()")
    b.run(turn, False, x, before["y"] + 5, 60, 0)
    moved = b.run("return span()")
    assert (
        moved[0] > start[0] and abs((moved[1] - moved[0]) - (start[1] - start[0])) < 1e-9
    ), "the wheel sideways does not move it"
    for _ in range(9):
        b.run(turn, True, x, before["y"] + 5, 0, 400)
    equal(b.run("return [lens, ...span()]"), [None, 0, 20], "turned back")
    b.run(turn, True, x, before["y"] + 5, 0, -200)
    b.run("choose(-1)")
    b.keys("Escape")
    equal(b.run("return lens"), None, "after Escape")
    assert_quiet(b)


def test_rows_by(b, directory):
    """The table of lines, files and modules: shares of each, recursion once."""
    b.open(make_page(directory, TRUNK, "lines.html"))
    b.keys("t")
    b.run("$('by').value = 'line'; $('by').onchange()")
    got = {row[2]: row[:2] for row in table(b)}
    equal(got["/srv/a.lua:7 escape:7"], ["60.0%", "60.0%"], "a line")
    equal(got["/srv/a.lua:8 escape:8"], ["20.0%", "20.0%"], "another line of the same function")
    equal(got["/srv/a.lua:1 handler (a.lua:1)"], ["0.00%", "80.0%"], "a caller's line")
    equal(b.text("#count"), "5 lines", "how many")
    assert "by=line" in b.run("return location.hash")
    b.run("$('by').value = 'file'; $('by').onchange()")
    equal({row[2]: row[:2] for row in table(b)}["/srv/a.lua"], ["80.0%", "80.0%"], "a file, once a sample")
    b.run("$('by').value = 'module'; $('by').onchange()")
    equal({row[2]: row[:2] for row in table(b)}["luajit"], ["80.0%", "80.0%"], "a module")
    b.run("location.reload()")
    assert b.wait(
        "document.readyState === 'complete' && typeof by === 'string' && by === 'module'"
    ), "the address does not keep it"
    assert_quiet(b)


def test_head(b, directory):
    """One line, which unfolds; in a low window that is all there is above the graph."""
    url = make_page(
        directory, STACKS, "head.html", loss="20 samples of 20 expected in 5.0 s: 91.20 %25 complete, 2 truncated"
    )
    for size, most in (((800, 600), 50), ((1600, 900), 90), ((390, 844, 3, True), 120)):
        b.resize(*size)
        b.open("about:blank")
        b.open(url)
        settled(b)
        high = b.run("return $('head').offsetHeight")
        assert high <= most, "the head takes %d of %d px" % (high, size[1])
        assert b.run("return document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
        assert b.text("#brief").endswith("91.20 % complete"), b.text("#brief")
        b.click("#about")
        assert (
            b.run("return $('loss').offsetHeight > 0 && $('legend').offsetHeight > 0 && $('head').offsetHeight") > high
        )
        assert "head=open" in b.run("return location.hash")
        b.click("#about")
        equal(b.run("return $('head').offsetHeight"), high, "folded again")
    b.resize(*b.size)
    assert_quiet(b)


DIFFERENCE = """\
main;same 400~200
main;grew 300~50
main;shrank 100~200
main;vanished 0~50
main;new 200
"""


def test_difference(b, directory):
    url = make_page(
        directory, DIFFERENCE, "diff.html", before="old.yrt: nginx (pid 41), 10.0 s", loss_before="500 samples, 2 lost"
    )
    b.open(url)
    equal(b.text("#before"), "compared with old.yrt: nginx (pid 41), 10.0 s", "banner")
    equal(
        [b.text("#lossBefore"), b.text("#loss")],
        ["before: 500 samples, 2 lost", "after: 20 samples, 1 lost"],
        "loss of both sides",
    )
    equal(
        b.run("return [$('shares').childElementCount, document.querySelectorAll('#legend button i').length]"),
        [0, 0],
        "colours of kinds",
    )
    equal(
        settled(b),
        {"all@0", "main@1", "same@2", "grew@2", "shrank@2", "vanished@2", "new@2"},
        "frames, with what vanished",
    )
    equal(b.text("#facts").split(" \u00b7 ")[0], "1,000 samples", "samples")
    # 500 samples were before, 1,000 are now: shrank had 40 % and has 10 %.
    red = "const v = parseInt(fillOf(" + NODE + ").slice(1), 16); return (v >> 16) - (v & 255)"
    colours = {name: b.run(red, name) for name in ("same", "grew", "shrank", "vanished", "new")}
    assert abs(colours["same"]) < 12 and colours["grew"] > 40 and colours["new"] > colours["grew"], colours
    assert colours["shrank"] < -40 and colours["vanished"] < colours["shrank"], colours
    rects = {name: rect(b, name)["width"] for name in ("main", "vanished", "grew", "shrank")}
    assert (
        abs(rects["vanished"] / rects["main"] - 0.05) < 0.005 and abs(rects["grew"] / rects["main"] - 0.2) < 0.005
    ), rects
    tips = {}
    for name in ("shrank", "vanished", "new"):
        b.run("choose(" + NODE + ")", name)
        tips[name] = b.run("return [...tip.querySelectorAll('dl div')].map((e) => e.textContent)")
    equal(
        tips["shrank"],
        ["before40.0%", "after10.0%", "change\u221230.00 points", "\u00d7 0.25", "200 samples \u2192 100 samples"],
        "normalised numbers",
    )
    equal([tips["vanished"][3], tips["new"][3]], ["vanished", "new"], "tips")
    b.run("search('shrank')")
    equal(b.text("#matched"), "10.0% matched, before 40.0%", "search on both sides")
    b.run("search('')")
    b.keys("Escape", "t")
    equal(
        [row[2:5] for row in table(b)][:3],
        [["\u221230.00", "\u221230.00", "shrank"], ["+20.00", "+20.00", "grew"], ["+20.00", "+20.00", "new"]],
        "greatest change first",
    )
    b.keys("f")
    for value, gone in (("before", "new@2"), ("after", "vanished@2")):
        b.run("const s = document.querySelector('select'); s.value = arguments[0]; s.onchange()", value)
        assert gone not in settled(b), "%s when widths are %s" % (gone, value)
        assert "widths=" + value in b.run("return location.hash")
    b.run("setOff(new Set([data.kinds.indexOf('native')]))")
    equal(settled(b), {"all@0"}, "folded")
    equal(b.run("return [tree.nowTotal[0], Math.round(tree.baseTotal[0])]"), [1000, 1000], "both sides, folded")
    out = tempfile.mkdtemp(dir=directory)
    b.open("about:blank")
    b.open(url)
    assert b"main;vanished 50 0\n" in saved(b, out, "folded")[1], "folded stacks have both counts"
    b.run("show('callers', canon[tree.fn[" + NODE + "]])", "shrank")
    equal(settled(b), {"shrank@0", "main@-1"}, "callers in a difference")
    assert_quiet(b)


def test_calls(b, directory):
    """The histogram of latency: a column for each bucket that has calls, along a logarithmic scale; none without it."""
    buckets = [(1024, 1280, 3), (1280, 1536, 12), (16384, 20480, 6), (1048576, 1310720, 1)]
    odd = [
        dict(from_ns=7, to_ns=7, calls=1),
        dict(from_ns=-1, to_ns=8, calls=1),
        dict(from_ns=2 << 20, to_ns=3 << 20, calls="x"),
    ]
    one = {"histogram": [dict(from_ns=f, to_ns=t, calls=n) for f, t, n in buckets] + odd}
    several = [dict(one, function="f"), {"histogram": []}, dict(one, function="g")]
    stats = json.dumps({"latency": {"functions": several}})
    b.open(make_page(directory, STACKS, "calls.html", title="latency", unit="nanoseconds", stats=stats))
    text = b.run("return $('calls').textContent")
    assert "f: 22 calls by time" in text and "g: 22 calls by time" in text, text
    stats = json.dumps({"latency": one})
    b.open(make_page(directory, STACKS, "calls.html", title="latency", unit="nanoseconds", stats=stats))
    columns = b.run(
        "return [...document.querySelectorAll('#calls i')].map(i => [i.getBoundingClientRect().height, i.title])"
    )
    equal(
        [title for _, title in columns],
        [
            "1.02 \u00b5s to 1.28 \u00b5s: 3 calls, 13.6%",
            "1.28 \u00b5s to 1.54 \u00b5s: 12 calls, 54.5%",
            "16.4 \u00b5s to 20.5 \u00b5s: 6 calls, 27.3%",
            "1.05 ms to 1.31 ms: 1 calls, 4.55%",
        ],
        "columns",
    )
    tallest = columns[1][0]
    assert all(abs(height - tallest * n / 12) < 2 for (height, _), (_, _, n) in zip(columns, buckets)), columns
    equal(
        b.run("return [...document.querySelectorAll('#calls span')].map(s => s.textContent)"),
        ["10.0 \u00b5s", "100 \u00b5s"],
        "scale",
    )
    assert b.run(
        "return $('calls').getBoundingClientRect().bottom <= canvas.getBoundingClientRect().top &&"
        " canvas.getBoundingClientRect().height > 100"
    )
    b.open(make_page(directory, STACKS))
    assert b.run("return $('calls').hidden && $('calls').getBoundingClientRect().height === 0")


def shares(b):
    """What the legend says of own time, by kind."""
    return b.run(
        "return Object.fromEntries([...document.querySelectorAll('#legend button:not(.group)')].map((c) =>"
        " [c.childNodes[1].textContent, c.querySelector('small')?.textContent]))"
    )


def test_inverted(b, directory):
    """Bottom-up: leaves at the top, their callers below; each sample once; a zoom of its own; stacks from the root."""
    b.open("about:blank")
    b.open(make_page(directory, STACKS, "inverted.html"))
    b.keys("b")
    equal(b.run("return location.hash"), "#view=inverted", "hash")
    equal(b.run("return tree.total[0]"), 20, "samples")
    first = "return [...tree.fn].map((f, i) => [nameOf(f), tree.depth[i], tree.total[i]]).filter((r) => r[1] === 1)"
    leaves = [["do_syscall_64", 1, 5], ["escape (app.lua:7)", 1, 12], ["guessed", 1, 2], ["main", 1, 1]]
    equal(sorted([n.replace(" (app.lua:7)", ""), d, t] for n, d, t in b.run(first)),
          [[n.replace(" (app.lua:7)", ""), d, t] for n, d, t in leaves], "leaves")
    assert rect(b, "all")["y"] < rect(b, "guessed", 1)["y"] < rect(b, "main", 2)["y"], "it grows down"
    click(b, "guessed", 1)
    equal(zoomed(b), "guessed", "zoom")
    equal(b.run("return [...document.querySelectorAll('#path button')].map((e) => e.textContent)"),
          ["all", "guessed", "\u21c5 callers"], "path")
    equal(b.run("return stackOf([...tree.fn].findIndex((f, i) => nameOf(f) === 'main' && tree.parent[i] === zoom))"),
          "main\n? guessed", "a stack to copy")
    b.keys("t")
    own = dict((row[2], row[0]) for row in table(b))
    equal(own["main"][:5], "5.00%", "own samples in the table are those of leaves")
    b.keys("t")
    equal(b.run("return shown"), "inverted", "back from the table")
    b.keys("b")
    equal(b.run("return [shown, location.hash]"), ["flame", ""], "back")
    assert_quiet(b)


RECURSION = """\
main;f;f;f;g 4
main;f;f 2
main;even;odd;even;odd;even;odd;leaf 8
main;even;odd;even;odd;even 1
main;even;odd;even;other 5
"""


def test_recursion(b, directory):
    """Frames that repeat those above them are folded into them; what is half a cycle stays; no sample is lost."""
    b.open(make_page(directory, RECURSION, "recursion.html"))
    before = b.run("return tree.total[0]")
    b.keys("u")
    equal(b.run("return location.hash"), "#recursion=folded", "hash")
    paths = b.run(
        "return Object.fromEntries([...tree.now].map((v, i) => [i, v]).filter((r) => r[1]).map(([i, v]) =>"
        " [stackOf(i).split('\\n').join(';'), v]))"
    )
    even = "main;even;odd"
    wanted = {"main;f": 2, "main;f;g": 4, even + ";leaf": 8, even + ";even": 1, even + ";even;other": 5}
    equal(paths, wanted, "folded")
    equal(b.run("return tree.total[0]"), before, "samples")
    b.keys("u")
    equal(b.run("return [Math.max(...tree.depth), location.hash]"), [8, ""], "unfolded")
    b.open("about:blank")
    b.open(make_page(directory, "a;b;c 1\n", "none.html"))
    assert not b.run("return [...document.querySelectorAll('.group')].some((e) => e.textContent === 'Fold recursion')")


def test_tall(b, directory):
    """Where stacks are taller than the window: how much lies beyond it, and a way to where the widest one ends."""
    frames = ";".join("f%d" % i for i in range(100))
    b.open(make_page(directory, "x 90\n%s;[reason] 9\n%s;other 20\nshort 1\n" % (frames, frames), "tall.html"))
    click(b, "f0")
    settled(b)
    for key, edge in (("f", "top"), ("i", "bottom")):
        b.keys(key)
        settled(b)
        hidden = b.run("return Math.floor((rows * ROW - view.clientHeight) / ROW)")
        equal(b.text("#more")[2:], "%d more rows" % hidden, "what lies beyond")
        b.click("#more")
        equal(b.run("return nameOf(tree.fn[chosen])"), "other", "the end of the widest stack")
        assert b.run("const r = rectOf(chosen), box = view.getBoundingClientRect();"
                     "return r.y >= box.top - 1 && r.y + ROW <= box.bottom + 1"), "out of view"
        assert b.wait("$('more').hidden"), "something beyond the end"
        b.keys("Escape")
    b.open(make_page(directory, STACKS))
    settled(b)
    assert b.run("return $('more').hidden")


def test_wakers(b, directory):
    """Inside a wait is who ended it: its time is the wait's, whatever the waker's frames are."""
    stacks = ("main;nap;[sleep]|waiting;[woken by an interrupt]|waiting;hrtimer|kernel 6\n"
              "main;take;[lock]|waiting;[woken by b]|waiting;unlock|native;loop|script|python 3\nmain;take;[lock]|waiting 1\n")
    b.open(make_page(directory, stacks, "wakers.html"))
    said = shares(b)
    equal((said["waiting"], [v for k, v in said.items() if k != "waiting"]), ("100.0%", [None] * 3), "own time")


def with_times(directory, **meta):
    """A page of two threads for four seconds, a sample every 100 ms in turn."""
    stacks = "one (tid 1)|thread;a 20\ntwo (tid 2)|thread;b 20\n"
    url = make_page(directory, stacks, "times.html", duration=4, frequency=10)
    path = url[len("file://"):]
    with open(path, encoding="utf-8") as page:
        text = page.read()
    times = {"step": 1, "after": [100 if i else 0 for i in range(40)], "node": [2, 4] * 20, "count": [1] * 40}
    head, tail = text.split("</script>", 1)
    assert head.endswith("}"), head[-20:]
    with open(path, "w", encoding="utf-8") as page:
        page.write(head[:-1] + ',"times":' + json.dumps(times) + "}</script>" + tail)
    return url


def colours_of(b, css):
    return b.run(
        "const c = document.querySelector(arguments[0]), copy = new OffscreenCanvas(c.width, c.height),"
        " g = copy.getContext('2d', { willReadFrequently: true }); g.drawImage(c, 0, 0);"
        "const d = g.getImageData(0, 0, c.width, c.height).data;"
        "return [...new Set(new Uint32Array(d.buffer))].sort()", css)


def test_time(b, directory):
    """Heat map and strips: the theme's colours at once, and ranges by keys as by the mouse."""
    b.open(with_times(directory))
    light = [colours_of(b, css) for css in ("#heat", "#strips canvas")]
    b.keys("d")
    dark = [colours_of(b, css) for css in ("#heat", "#strips canvas")]
    assert all(not set(a) & set(z) for a, z in zip(light, dark)), "colours of the other theme"
    b.open("about:blank")
    b.open(with_times(directory) + "#theme=dark")
    equal([colours_of(b, css) for css in ("#heat", "#strips canvas")], dark, "as a dark page that opens")
    part = "return part"
    b.run("$('heat').focus()")
    assert b.run("return document.activeElement === $('heat')")
    b.keys("Right")
    equal(b.run(part), [0, 1000], "a second")
    b.keys("Right")
    equal(b.run(part), [1000, 2000], "the next one")
    equal(b.run("return whole.nowTotal[0]"), 10, "its samples")
    b.run("window.shift = (k) => document.activeElement.dispatchEvent("
          "new KeyboardEvent('keydown', { key: k, shiftKey: true, bubbles: true }))")
    b.run("shift('ArrowRight'), shift('ArrowRight'), shift('ArrowRight')")
    equal(b.run(part), [1000, 4000], "extended to the end")
    b.run("for (let i = 0; i < 4; i++) shift('ArrowLeft')")
    equal(b.run(part), [0, 2000], "and to the other side of where it began")
    b.keys("Enter")
    equal(b.run("return [against, isDiff]"), [True, True], "against the rest")
    b.keys("Enter", "Escape")
    equal(b.run("return [part, document.activeElement.id, location.hash]"), [None, "heat", "#theme=dark"], "undone")
    b.keys("Up", "Up")
    equal(b.run(part), [20, 40], "cells")
    b.keys("Escape")
    b.run("document.querySelector('#strips canvas').focus()")
    b.keys("Left")
    equal(b.run(part), [3960, 4000], "a hundredth")
    b.keys("Down")
    equal(b.run("return document.activeElement === document.querySelectorAll('#strips canvas')[1]"), True, "next strip")
    equal(b.run("return [chosen, part]"), [-1, [3960, 4000]], "the graph does not move")
    assert_quiet(b)


def run(b, directory):
    for test in (
        test_export,
        test_threads,
        test_tiers,
        test_approximate,
        test_trunk,
        test_long_trunk,
        test_menu,
        test_lens,
        test_rows_by,
        test_head,
        test_difference,
        test_calls,
        test_inverted,
        test_recursion,
        test_tall,
        test_wakers,
        test_time,
    ):
        test(b, directory)
        print("ok", test.__name__)


main(run)
