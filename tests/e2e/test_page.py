# SPDX-License-Identifier: Apache-2.0
"""
The flame graph page in headless Chromium: what it computes, what clicks and keys do, what its address keeps, and
that it obeys its own policy.
"""
import base64
import hashlib
import re
from pathlib import Path

from page import NODE, assert_in_window, assert_quiet, click, equal, main, names, rect, settled, table, zoomed


def test_banner(b):
    equal(b.text("#title"), "lua-flame", "title")
    equal(b.text("#target"), "nginx (pid 42)", "target")
    equal(b.text("#loss"), "20 samples, 1 lost", "loss line")
    equal(b.text("#command"), "yrt lua-flame -p 42", "command")
    equal(b.text("#facts"), "20 samples \u00b7 5.0 s \u00b7 999 Hz \u00b7 2026-11-12 10:03 UTC", "facts")
    equal(b.run("return document.title"), "lua-flame \u00b7 nginx (pid 42)", "document title")
    equal(b.text("#marks"), "? guessed frame", "marks")
    chips = b.run("return [...document.querySelectorAll('#legend button')].map((e) => e.textContent)")
    kinds = ["kernel25.0%", "native15.0%", "vm", "Lua interpreted", "Lua compiled60.0%"]
    equal(chips, kinds + ["Fold recursion"], "legend")


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


def run(b, directory):
    url = b.run("return location.href")
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
    test_policy(b, url)


main(run)
