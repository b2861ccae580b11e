# SPDX-License-Identifier: Apache-2.0
"""
The flame graph page in headless Chromium: what it computes, what clicks and keys do, and that hostile names stay text.
"""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from pages import MKPROFILE, big_profile  # noqa: E402
from webdriver import Browser  # noqa: E402

META = dict(title="lua-flame", target="nginx (pid 42)", command="yrt lua-flame -p 42", unit="samples",
            loss="20 samples, 1 lost", start=1794477812, duration=5, frequency=999)
STACKS = """\
main;loop;handler (app.lua:42)|script|luajit|/srv/app.lua|42;escape|jit|luajit|/srv/app.lua|7 6
main;loop;handler (app.lua:42)|script|luajit|/srv/app.lua|42;lj_str_new|vm|libluajit;escape|jit|luajit|/srv/app.lua|7 2
main;loop;handler (app.lua:42)|script|luajit|/srv/app.lua|42;escape|jit|luajit|/srv/app.lua|7;escape|jit|luajit|/srv/app.lua|7 4
main;loop;do_syscall_64|kernel|kernel 5
main;guessed|native|libx.so|||2 2
main 1
"""
NODE = (
    "[...tree.fn].findIndex((f, i) => nameOf(f) === arguments[0] && (arguments[1] ?? tree.depth[i]) === tree.depth[i])"
)


def make_page(directory, stacks, name="page.html", **meta):
    path = os.path.join(directory, name)
    with open(path, "wb") as out:
        subprocess.run([MKPROFILE, "html"] + ["%s=%s" % m for m in dict(META, **meta).items()],
                       input=stacks.encode(), stdout=out, check=True)
    return "file://" + path


def equal(got, wanted, what):
    assert got == wanted, "%s: %r instead of %r" % (what, got, wanted)


def rect(b, name, depth=None):
    r = b.run("const i = " + NODE + "; return i < 0 ? null : rectOf(i)", name, depth)
    assert r, "no frame " + name
    return r


def click(b, name, depth=None):
    r = rect(b, name, depth)
    b.mouse(r["x"] + r["width"] / 2, r["y"] + r["height"] / 2, click=True)


def zoomed(b):
    return b.run("return nameOf(tree.fn[zoom])")


def settled(b):
    """Waits for the end of a movement and gives what is drawn, as name@depth."""
    assert b.wait("performance.now() - movedAt > 2 * MOVE_MS && !pending")
    return set(b.run("const [a, z] = span(), out = [];"
                     "visible(a, z, (i) => void out.push(nameOf(tree.fn[i]) + '@' + tree.depth[i])); return out"))


def test_banner(b):
    equal(b.text("#title"), "lua-flame", "title")
    equal(b.text("#target"), "nginx (pid 42)", "target")
    equal(b.text("#loss"), "20 samples, 1 lost", "loss line")
    equal(b.text("#command"), "yrt lua-flame -p 42", "command")
    equal(b.text("#facts"), "20 samples \u00b7 5.0 s \u00b7 999 Hz \u00b7 2026-11-12 10:03 UTC", "facts")
    equal(b.run("return document.title"), "lua-flame \u00b7 nginx (pid 42)", "document title")
    equal(b.text("#marks"), "? guessed frame", "marks")
    chips = b.run("return [...document.querySelectorAll('#legend button')].map((e) => e.textContent)")
    equal(chips, ["kernel25.0%", "native15.0%", "vm", "Lua interpreted", "Lua compiled60.0%"], "legend")


def test_drawn(b):
    """A frame has the colour of its kind, where the page says that it is."""
    r = rect(b, "do_syscall_64")
    pixel = """const box = canvas.getBoundingClientRect(), d = devicePixelRatio;
        const at = (x, y) => [...ctx.getImageData((x - box.left) * d, (y - box.top) * d, 1, 1).data].join();
        const probe = document.createElement("canvas").getContext("2d");
        const i = """ + NODE + """;
        probe.fillStyle = fillOf(i); probe.fillRect(0, 0, 1, 1);
        return [at(arguments[2], arguments[3]), [...probe.getImageData(0, 0, 1, 1).data].join()]"""
    got, wanted = b.run(pixel, "do_syscall_64", None, r["x"] + r["width"] - 4, r["y"] + 3)
    equal(got, wanted, "colour of a kernel frame")
    same = (
        "ctx.font = font; return [...glyphs.keys()].every((ch) => Math.abs(glyphs.get(ch) - ctx.measureText(ch).width)"
        " < 0.01)"
    )
    assert b.run("return glyphs.size") > 10 and b.run(same), "names are measured by another font than they are drawn by"
    wide = rect(b, "main")
    assert abs(r["width"] / wide["width"] - 5 / 20) < 0.001, "width of a frame"
    assert r["y"] < wide["y"], "the flame does not grow up"


def test_tip(b):
    r = rect(b, "handler (app.lua:42)")
    b.mouse(r["x"] + 5, r["y"] + 9)
    assert b.wait("!tip.hidden")
    equal(b.text("#tip h2"), "handler (app.lua:42)", "tip")
    equal(b.text("#tip p"), "Lua interpreted \u00b7 luajit \u00b7 /srv/app.lua:42", "facts in the tip")
    equal(b.run("return [...tip.querySelectorAll('dl div')].map((e) => e.textContent)"),
          ["12 samples", "of all60.0%", "of parent70.6%", "self0.00%"], "numbers in the tip")
    r = rect(b, "guessed")
    b.mouse(r["x"] + 5, r["y"] + 9)
    assert b.wait("tip.textContent.includes('a guess')"), "a guessed frame is not said to be one"
    b.mouse(3, 3)
    assert b.wait("tip.hidden"), "the tip stays"


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


def test_search(b):
    b.keys("/", "escape")
    # 6 + 2 + 4: the recursion is counted once.
    assert b.wait("document.querySelector('#matched').textContent"), "nothing matched"
    equal(b.text("#matched"), "60.0% matched", "matched")
    assert b.run("return location.hash").endswith("#q=escape")
    b.keys("|LOOP")
    equal(b.text("#matched"), "60.0% matched", "an upper case letter makes the search heed case")
    b.run("search('lj_|^do_')")
    equal(b.text("#matched"), "35.0% matched", "matched by alternatives")
    b.run("search('handler (')")
    equal(b.text("#matched"), "60.0% matched", "what is no regular expression is sought as it stands")
    assert b.run("return $('search').classList.contains('literal')")
    b.run("search('.')")
    equal(b.text("#matched"), "100.0% matched", "everything matched")
    b.keys("Escape")
    equal(b.text("#matched"), "", "Escape does not clear the search")


def test_zoom(b):
    before = settled(b)
    equal(len(before), 9, "frames drawn")
    b.run("search('^escape')")
    click(b, "handler (app.lua:42)")
    equal(zoomed(b), "handler (app.lua:42)", "zoom")
    equal(settled(b), {"all@0", "main@1", "loop@2", "handler (app.lua:42)@3", "escape@4", "escape@5", "lj_str_new@4"},
          "drawn when zoomed")
    equal(b.text("#matched"), "60.0% matched, 100.0% of this", "matched when zoomed")
    whole = b.run("return stage.clientWidth")
    equal(rect(b, "handler (app.lua:42)")["width"], whole, "width of the zoomed frame")
    equal(rect(b, "main")["width"], whole, "width of what is below it")
    equal(b.text("#path"), "all\u203amain\u203aloop\u203ahandler (app.lua:42)\u21c5 callers", "path")
    click(b, "loop")
    equal(zoomed(b), "loop", "zoom out by a click below")
    b.run("history.back()")
    assert b.wait("nameOf(tree.fn[zoom]).startsWith('handler')"), "the browser's way back"
    b.run("$('search').blur()")
    b.keys("Escape")
    equal(zoomed(b), "all", "Escape")
    b.run("search('')")
    equal(settled(b), before, "drawn after coming back")
    assert b.run("return $('crumbs').hidden")
    click(b, "loop")
    b.click("#reset")
    equal(zoomed(b), "all", "reset")


def test_keys(b):
    b.run("document.activeElement.blur()")
    chosen = "return nameOf(tree.fn[chosen])"
    b.keys("Up")
    equal(b.run(chosen), "all", "first chosen")
    b.keys("Up", "Up", "Up")
    equal(b.run(chosen), "handler (app.lua:42)", "widest caller chain")
    b.keys("Left")
    equal(b.run(chosen), "do_syscall_64", "left")
    b.keys("Right", "Right")
    equal(b.run(chosen), "handler (app.lua:42)", "right, to the end")
    b.keys("Down")
    equal(b.run(chosen), "loop", "down")
    b.keys("Enter")
    equal(zoomed(b), "loop", "enter")
    b.keys("Escape", "Escape")
    equal(zoomed(b), "all", "Escape twice")


def test_flip(b):
    b.keys("i")
    assert rect(b, "all")["y"] < rect(b, "main")["y"] < rect(b, "loop")["y"], "an icicle grows down"
    assert "view=icicle" in b.run("return location.hash")
    b.click("#views button[value=flame]")
    assert rect(b, "all")["y"] > rect(b, "main")["y"]
    equal(b.run("return location.hash"), "", "hash of the plain view")


def test_legend(b):
    b.click("#legend button:nth-child(3)")
    # Without the vm frame its 2 samples of escape join the other 10.
    assert "lj_str_new@4" not in settled(b)
    equal(b.run("return tree.total[" + NODE + "]", "escape", 4), 12, "merged samples")
    equal(b.run("return tree.total[0]"), 20, "all samples")
    assert "off=vm" in b.run("return location.hash")
    b.click("#legend button:nth-child(5)")
    equal(settled(b), {"all@0", "main@1", "loop@2", "handler (app.lua:42)@3", "do_syscall_64@3", "guessed@2"},
          "without vm and jit")
    equal(b.run("return tree.self[" + NODE + "]", "handler (app.lua:42)", 3), 12, "own samples take over")
    for nth in (5, 3):
        b.click("#legend button:nth-child(%d)" % nth)
    equal(len(settled(b)), 9, "frames drawn in the end")


def test_hash(b, url):
    b.open(url)
    number = b.run("return " + NODE, "loop")
    b.open("about:blank")
    b.open(url + "#q=escape&view=icicle&zoom=%d" % number)
    equal(zoomed(b), "loop", "zoom from the hash")
    equal(b.text("#matched"), "60.0% matched, 70.6% of this", "search from the hash")
    assert rect(b, "all")["y"] < rect(b, "main")["y"]
    for odd in ("#zoom=99999999", "#zoom=-1&q=%5B", "#off=root,nonsense&view=x", "#zoom=1e99&q=%ff"):
        b.open("about:blank")
        b.open(url + odd)
        equal(zoomed(b), "all", "zoom from " + odd)


def test_phone(b):
    b.resize(390, 844, 2, True)
    assert b.wait("canvas.width === 2 * width && width < 390"), "the canvas does not follow the screen"
    assert_in_window(b)
    assert b.run("return document.documentElement.scrollWidth <= 390"), "the page is wider than a phone"
    r = rect(b, "loop")
    b.mouse(r["x"] + 20, r["y"] + 9, click=True, kind="touch")
    assert b.wait("!tip.hidden && nameOf(tree.fn[zoom]) === 'loop'"), "a touch does not zoom"
    box = b.run("const r = tip.getBoundingClientRect(); return [r.left, r.right, r.bottom]")
    equal(box, [0, 390, 844], "place of the tip")
    b.resize(*b.size)


def test_dark(b):
    look = "return [palette.ink, palette.fill.flat().join(), getComputedStyle(document.body).backgroundColor]"
    light = b.run(look)
    b.media(prefers_color_scheme="dark")
    assert b.wait("palette.ink === '#f4f2ee'"), "no dark mode"
    dark = b.run(look)
    assert all(x != y for x, y in zip(light, dark)), (light, dark)
    b.keys("d")
    equal(b.run(look), light, "light by a key, where the system is dark")
    assert "theme=light" in b.run("return location.hash")
    b.media(prefers_color_scheme="light")
    b.click("#theme")
    equal(b.run(look), dark, "dark by a click, where the system is light")
    b.open(b.run("return location.href"))
    b.run("location.reload()")
    assert b.wait("document.readyState === 'complete' && typeof palette === 'object'")
    equal(b.run(look), dark, "dark by the hash")
    b.click("#theme")
    equal(b.run(look), light, "light again")


def table(b):
    """The rows of the table: [[cells]], as far as they are in the page."""
    return b.run("return [...document.querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
                 ".filter((r) => r.length)")


def names(b):
    return [row[2] for row in table(b)]


def test_table(b):
    b.keys("t")
    assert "view=table" in b.run("return location.hash")
    equal(
        table(b)[:4],
        [
            ["60.0%", "60.0%", "escape", "luajit"],
            ["25.0%", "25.0%", "do_syscall_64", "kernel"],
            ["10.0%", "10.0%", "guessed", "libx.so"],
            ["5.00%", "100.0%", "main", ""],
        ],
        "heaviest own time first",
    )
    equal(b.text("#count"), "7 functions", "how many")
    b.click("th.total button")
    equal(names(b)[:3], ["main", "loop", "escape"], "by total")
    assert "sort=total" in b.run("return location.hash")
    b.click("th.total button")
    equal(names(b)[-1], "main", "the other way round")
    equal(b.run("return document.querySelector('th.total').ariaSort"), "ascending", "direction for a screen reader")
    b.click("th.name button")
    equal(names(b), sorted(names(b)), "by name")
    b.run("search('^l')")
    equal(names(b), ["lj_str_new", "loop"], "what matches")
    b.run("search('')")
    b.click("#legend button:nth-child(5)")
    assert "escape" not in names(b), "a kind that is off"
    equal([row[0] for row in table(b) if row[2].startswith("handler")], ["50.0%"], "whose time its callers take")
    b.click("#legend button:nth-child(5)")
    b.click("#views button[value=flame]")
    click(b, "handler (app.lua:42)")
    b.keys("t")
    equal(b.text("#count"), "3 functions below handler (app.lua:42)", "of a part")
    equal([row[:3] for row in table(b)][0], ["100.0%", "100.0%", "escape"], "shares of the part")
    b.keys("Escape")
    equal(len(table(b)), 7, "rows after Escape")
    b.run("history.back()")
    assert b.wait("!$('table').hidden && lines.length === 3"), "the browser's way back"
    b.keys("Escape", "f")
    equal(
        b.run("return [shown, zoom, $('table').hidden, stage.hidden]"), ["flame", 0, True, False], "back in the flame"
    )


def test_sandwich(b):
    b.keys("t")
    b.click("th.self button")
    b.click("tbody tr:nth-child(2) button")
    equal(b.run("return [shown, nameOf(focused)]"), ["callers", "escape"], "a click on a row")
    assert "view=callers" in b.run("return location.hash")
    equal(settled(b), {"escape@0", "escape@1", "handler (app.lua:42)@-1", "loop@-2", "main@-3", "lj_str_new@-1",
                       "handler (app.lua:42)@-2", "loop@-3", "main@-4"}, "callers and callees")
    middle, caller, callee = rect(b, "escape", 0), rect(b, "handler (app.lua:42)", -1), rect(b, "escape", 1)
    assert caller["y"] < middle["y"] < callee["y"], "callers are not above, callees not below"
    assert abs(caller["width"] / middle["width"] - 10 / 12) < 0.01, "share of a caller"
    assert abs(callee["width"] / middle["width"] - 4 / 12) < 0.01, "share of a callee: recursion"
    equal(b.text("#path"), "Callers \u2191 callees \u2193 ofescape60.0%", "heading")
    b.mouse(caller["x"] + 9, caller["y"] + 9)
    assert b.wait("!tip.hidden")
    equal(b.run("return [...tip.querySelectorAll('dl div')].map((e) => e.textContent)"),
          ["10 samples", "of all50.0%", "of escape83.3%"], "numbers of a caller")
    b.mouse(caller["x"] + 9, caller["y"] + 9, click=True)
    equal(b.run("return nameOf(focused)"), "handler (app.lua:42)", "a click goes to a caller")
    equal(len(settled(b)), 6, "frames around the handler")
    b.keys("Up", "Up")
    equal(b.run("return [nameOf(tree.fn[chosen]), tree.depth[chosen]]"), ["loop", -1], "up to the caller")
    b.keys("Down", "Down")
    equal(b.run("return [nameOf(tree.fn[chosen]), tree.depth[chosen]]"), ["escape", 1], "down to the callee")
    b.keys("Right")
    equal(b.run("return [nameOf(tree.fn[chosen]), tree.depth[chosen]]"), ["lj_str_new", 1], "right")
    b.keys("Enter")
    equal(b.run("return nameOf(focused)"), "lj_str_new", "Enter goes to it")
    b.run("search('^main')")
    equal(b.text("#matched"), "100.0% matched", "search in callers")
    b.run("search('')")
    b.run("history.back()")
    assert b.wait("nameOf(focused) === 'handler (app.lua:42)'"), "the browser's way back"
    b.keys("Escape")
    equal(b.run("return shown"), "table", "Escape goes to where it came from")
    b.keys("f")
    r = rect(b, "loop")
    b.mouse(r["x"] + 5, r["y"] + 9)
    b.keys("c")
    equal(b.run("return nameOf(focused)"), "loop", "a key under the mouse")
    url = b.run("return location.href")
    b.open("about:blank")
    b.open(url)
    equal(b.run("return [shown, nameOf(focused), tree.n]"), ["callers", "loop", 8], "callers from the hash")
    b.click("#reset")
    equal(b.run("return [shown, location.hash]"), ["flame", ""], "back")
    click(b, "loop")
    b.click("#path .callers")
    equal(b.run("return [shown, nameOf(focused)]"), ["callers", "loop"], "callers of what is zoomed to")
    b.keys("Escape")
    equal([b.run("return shown"), zoomed(b)], ["flame", "loop"], "back to what was zoomed to")
    b.keys("Escape")
    for odd in (
        "#view=callers&fn=99999",
        "#view=callers&fn=-1",
        "#view=callers",
        "#view=table&sort=x&reverse=1&zoom=3",
    ):
        b.open("about:blank")
        b.open(b.run("return arguments[0]", url.split("#")[0] + odd))
        settled(b)
    b.open("about:blank")
    b.open(url.split("#")[0])


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
    for _ in range(250):
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
    stats = json.dumps({"latency": {"histogram": [dict(from_ns=f, to_ns=t, calls=n) for f, t, n in buckets] + odd}})
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


def test_size(directory):
    size = os.path.getsize(make_page(directory, "", "empty.html")[7:])
    assert size <= 88 << 10, "the page without data has %d bytes" % size


TALL = ";".join("f%d" % i for i in range(100))
ODD_SIZES = ((1500, 1000), (800, 500), (390, 844, 3, True), (844, 390, 3, True), (320, 240))


def assert_in_window(b, root=True):
    """
    The page never scrolls, only the graph in it; the head is whole, or half of the window, and the root can be seen.
    """
    assert b.run("return document.scrollingElement.scrollHeight <= innerHeight && !scrollY"), "the page scrolls"
    head, view, node, high = b.run(
        """const top = (e) => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom];
        return [top($("head")), top(view), rectOf(0), innerHeight]"""
    )
    equal(head[0], 0, "top of the head")
    assert head[1] <= view[0] and view[1] <= high, "head %s, graph %s, window %d" % (head, view, high)
    seen = node["y"] >= view[0] - 1 and node["y"] + node["height"] <= view[1] + 1
    assert seen == root, "root at %s, graph %s" % (node, view)


def test_scroll(b, directory):
    url = make_page(directory, TALL + " 1\n", "tall.html")
    for size in ODD_SIZES:
        b.resize(*size)
        b.open("about:blank")
        b.open(url)
        settled(b)
        assert_in_window(b)
        b.keys("i")
        assert_in_window(b)
        b.keys("i")
        assert_in_window(b)
    for size in ODD_SIZES:
        b.resize(*size)
        assert b.wait("innerHeight === arguments[0] && !pending && !stale", size[1])
        assert_in_window(b)
    b.resize(*b.size)
    b.keys(*["Up"] * 80)
    equal(b.run("return nameOf(tree.fn[chosen])"), "f78", "chosen far from the root")
    assert_in_window(b, root=False)
    y = rect(b, "f78")["y"]
    b.keys("Enter")
    equal(zoomed(b), "f78", "zoom far from the root")
    assert abs(rect(b, "f78")["y"] - y) < 2, "what is zoomed to moves away"
    b.open("about:blank")
    b.open(url + "#zoom=79")
    settled(b)
    assert_in_window(b, root=False)
    assert b.run("const r = view.getBoundingClientRect(), y = rectOf(zoom).y; return r.top <= y && y < r.bottom")


def pixels(b, png):
    """
    Opens a picture: at(x, y) in the page is then the colour of a pixel of it, row(y) the number of colours in a line.
    """
    b.open("about:blank")
    b.run("""const image = new Image(), c = document.createElement("canvas");
        image.onload = () => {
            c.width = image.width, c.height = image.height;
            const g = c.getContext("2d");
            g.drawImage(image, 0, 0);
            const all = new Uint32Array(g.getImageData(0, 0, c.width, c.height).data.buffer);
            window.at = (x, y) => all[y * c.width + x];
            window.row = (y) => new Set(all.subarray(y * c.width, (y + 1) * c.width)).size;
            window.size = [c.width, c.height];
        };
        image.src = "data:image/png;base64," + arguments[0]""", base64.b64encode(png).decode())
    assert b.wait("window.size"), "no picture"
    return b.run("return size")


def test_plain_screenshot(b, directory):
    """
    A picture that a browser takes of the file shows the whole page: the head above, the root below, the graph between.
    """
    url, png = make_page(directory, TALL + " 1\n", "tall.html"), os.path.join(directory, "plain.png")
    b.open(url)
    fill = b.run("const p = document.createElement('canvas').getContext('2d'); p.fillStyle = fillOf(0);"
                 "p.fillRect(0, 0, 1, 1); return new Uint32Array(p.getImageData(0, 0, 1, 1).data.buffer)[0]")
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1500,1000",
            "--user-data-dir=" + os.path.join(directory, "home"),
            "--screenshot=" + png,
            url,
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    wide, high = pixels(b, Path(png).read_bytes())
    assert wide == 1500 and high > 800, "size of the picture"
    head = b.run("return Array.from({ length: 40 }, (_, y) => row(y)).filter((n) => n > 2).length")
    assert head > 15, "no title at the top"
    root = b.run(
        "return Array.from({ length: 80 }, (_, i) => size[1] - 1 - i).filter((y) => at(750, y) ==="
        " arguments[0]).length",
        fill,
    )
    assert 16 <= root <= 19, "%d lines of the root's colour at the bottom" % root
    empty = b.run(
        "let n = 0, most = 0; for (let y = 0; y < size[1]; y++) most = Math.max(most, n = row(y) > 1 ? 0 : n + 1);"
        "return most"
    )
    assert empty < 20, "a blank band of %d lines" % empty


def test_print(b, directory):
    """On paper: all rows, on one page, light."""
    b.open(make_page(directory, TALL + " 1\n", "tall.html"))
    b.media(prefers_color_scheme="dark")
    b.run("""addEventListener("beforeprint", () => window.printed = [height, rows * ROW, palette.ink])""")
    pdf = base64.b64decode(b.devtools("Page.printToPDF", preferCSSPageSize=True)["data"])
    equal(len(re.findall(rb"/Type\s*/Page\b", pdf)), 1, "pages")
    equal(b.run("return printed"), [101 * 19, 101 * 19, "#1d1c1a"], "height, rows and ink on paper")
    assert b.wait("height === view.clientHeight && palette.ink === '#f4f2ee'"), "the screen is not as before"
    b.media(prefers_color_scheme="light")


def test_hostile(b, directory):
    """Names that try to be code stay text wherever the page shows them."""
    attack = [
        "quote \" ' ` \\ end",
        "line\none\r\ntwo\u0085",
        "long " + "x" * 4000,
        "</script><script>window.hit = 1</script>",
        "<img src=x onerror=window.hit=1>",
        "<!--<script>",
        "\u2028window.hit=1//\u202e",
        "\"];window.hit=1;[\"",
        "__proto__",
        "{{script}}",
    ]
    quoted = ["".join("%%%02x" % byte for byte in name.encode()) for name in attack] + ["%ff%fe%c3"]
    stacks = "".join("%s|script|%s|%s|1;%s 1\n" % (q, q, q, q) for q in quoted)
    evil = {k: quoted[3] for k in ("title", "target", "command", "loss", "unit")}
    b.open(make_page(directory, stacks, "evil.html", **evil))
    for name in attack + ["\ufffd\ufffd\ufffd"]:
        b.run("search(arguments[0].replace(/[^\\w ]/gs, '[^]').slice(0, 200))", name)
        b.run("choose(" + NODE + "); zoomTo(chosen)", name, 1)
        equal(b.text("#tip h2"), name, "name in the tip")
        equal(b.text("#path button:nth-last-child(2)"), name, "name in the path")
        settled(b)
        b.run("show('callers', canon[tree.fn[zoom]])")
        equal(b.text("#path button"), name, "name in the head of callers")
        b.keys("Escape")
    b.run("zoomTo(0)")
    b.keys("t")
    assert set(attack) <= set(names(b)), "names in the table"
    equal(b.text("#title"), attack[3], "title")
    equal(b.text("#loss"), attack[3], "loss line")
    assert b.run("return window.hit === undefined"), "a name was executed"
    equal(b.run("return document.querySelectorAll('img').length"), 0, "elements made by names")
    equal(b.run("return document.scripts.length"), 2, "scripts")
    assert_quiet(b)


def test_policy(b, url):
    """The policy permits the page's own script and style, and nothing else."""
    page = Path(url[7:]).read_text()
    for tag in ("script", "style"):
        body = re.search("<%s>(.*?)</%s>" % (tag, tag), page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert "%s-src 'sha256-%s';" % (tag, digest) in page, "hash of " + tag
    b.open(url)
    assert_quiet(b)
    # In a timer, because the browser lets the driver's own calls use eval.
    b.run("""setTimeout(() => {
        const s = document.createElement("script");
        s.textContent = "window.hit = 1";
        document.body.append(s);
        document.body.insertAdjacentHTML("beforeend", "<p onclick='window.hit = 2' style='color: red' id=p>x</p>");
        document.getElementById("p").click();
        try { window.eval("window.hit = 3"); } catch {}
        window.tried = true;
    })""")
    assert b.wait("window.tried")
    assert b.run("return window.hit === undefined"), "the policy does not stop other scripts"
    assert b.run("return getComputedStyle(document.getElementById('p')).color !== 'rgb(255, 0, 0)'"), "nor styles"
    assert len(b.log()) >= 3, "the policy's refusals are not in the log"


def test_odd_profiles(b, directory):
    for name, stacks, drawn in (("empty", "", {"all@0"}), ("one", "f 1\n", {"all@0", "f@1"})):
        b.open(make_page(directory, stacks, name + ".html", start=0, duration=0, frequency=0))
        equal(settled(b) | {"all@0"}, drawn, "drawn of " + name)
        b.keys("Up", "Up", "Enter", "Escape")
        b.run("search('f')")
    depth = 2000
    b.open(make_page(directory, ";".join("f%d" % i for i in range(depth)) + " 3\n", "deep.html"))
    equal(len(settled(b)), depth + 1, "frames of a deep stack")
    assert b.run("return canvas.height <= innerHeight * devicePixelRatio"), "the canvas is higher than the screen"
    assert b.run("return rectOf(0).y < innerHeight && rectOf(0).y > 0"), "the root is out of sight"
    click(b, "f3")
    equal(zoomed(b), "f3", "zoom in a deep stack")
    assert_quiet(b)


def test_big(b, directory):
    url = make_page(directory, big_profile(210000), "big.html")
    b.open("about:blank")
    b.open(url)
    nodes = b.run("return tree.n")
    assert nodes > 200000, "only %d nodes" % nodes
    settled(b)
    times = b.run(
        """const time = (f) => { const t = performance.now(); f(); return Math.round(performance.now() - t); };
        const nav = performance.getEntriesByType("navigation")[0];
        return { load: Math.round(nav.loadEventEnd), draw: time(() => draw(performance.now())), search: time(() => search("_1")),
            fold: time(() => setOff(new Set([5]))) }"""
    )
    print("%d nodes, %d KiB: %s ms" % (nodes, os.path.getsize(url[7:]) >> 10, times))
    total = b.run("return [tree.total[0], whole.total[0]]")
    equal(total[0], total[1], "samples after folding")
    assert b.run("return tree.n") < nodes
    assert_quiet(b)


def assert_quiet(b):
    equal([m["message"] for m in b.log()], [], "messages of the console")


def main():
    with tempfile.TemporaryDirectory(prefix="yrt-page-") as directory, Browser() as b:
        b.media(prefers_color_scheme="light")
        url = make_page(directory, STACKS)
        b.open(url)
        for test in (
            test_banner,
            test_drawn,
            test_tip,
            test_search,
            test_zoom,
            test_keys,
            test_flip,
            test_legend,
            test_table,
            test_sandwich,
            test_phone,
            test_dark,
        ):
            test(b)
            assert_quiet(b)
            print("ok", test.__name__)
        test_hash(b, url)
        assert_quiet(b)
        test_size(directory)
        for test in (
            test_export,
            test_threads,
            test_tiers,
            test_approximate,
            test_trunk,
            test_menu,
            test_lens,
            test_rows_by,
            test_head,
            test_difference,
            test_calls,
            test_scroll,
            test_plain_screenshot,
            test_print,
            test_hostile,
            test_odd_profiles,
            test_big,
        ):
            test(b, directory)
            print("ok", test.__name__)
        test_policy(b, url)


main()
