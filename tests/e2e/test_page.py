# SPDX-License-Identifier: Apache-2.0
"""The flame graph page in headless Chromium: what it computes, what clicks and keys do, and that hostile names stay text."""
import base64
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from webdriver import Browser  # noqa: E402

MKPROFILE = os.path.join(os.environ["YRT_BUILD"], "yrt-mkprofile")
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
NODE = "[...tree.fn].findIndex((f, i) => nameOf(f) === arguments[0] && (arguments[1] ?? tree.depth[i]) === tree.depth[i])"


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
    equal(chips, ["kernel25.0%", "native15.0%", "vm", "script", "jit60.0%"], "legend")


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
    wide = rect(b, "main")
    assert abs(r["width"] / wide["width"] - 5 / 20) < 0.001, "width of a frame"
    assert r["y"] < wide["y"], "the flame does not grow up"


def test_tip(b):
    r = rect(b, "handler (app.lua:42)")
    b.mouse(r["x"] + 5, r["y"] + 9)
    assert b.wait("!tip.hidden")
    equal(b.text("#tip h2"), "handler (app.lua:42)", "tip")
    equal(b.text("#tip p"), "script \u00b7 luajit \u00b7 /srv/app.lua:42", "facts in the tip")
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
    equal(b.text("#crumbs"), "all\u203amain\u203aloop\u203ahandler (app.lua:42)", "path")
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
    b.click("#flip")
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
    light = b.run("return [palette.ink, palette.fill.flat().join()]")
    b.media(prefers_color_scheme="dark")
    assert b.wait("palette.ink === '#f4f2ee'"), "no dark mode"
    dark = b.run("return [palette.ink, palette.fill.flat().join()]")
    assert light[0] != dark[0] and light[1] != dark[1]
    b.media(prefers_color_scheme="light")


TALL = ";".join("f%d" % i for i in range(100))
ODD_SIZES = ((1500, 1000), (800, 500), (390, 844, 3, True), (844, 390, 3, True), (320, 240))


def assert_in_window(b, root=True):
    """The page never scrolls, only the graph in it; the head is whole, or half of the window, and the root can be seen."""
    assert b.run("return document.scrollingElement.scrollHeight <= innerHeight && !scrollY"), "the page scrolls"
    head, view, node, high = b.run("""const top = (e) => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom];
        return [top($("head")), top(view), rectOf(0), innerHeight]""")
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
    """Opens a picture: at(x, y) in the page is then the colour of a pixel of it, row(y) the number of colours in a line."""
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
    """What a browser told to take a picture of the file gives: the head above, the root below, the graph between."""
    url, png = make_page(directory, TALL + " 1\n", "tall.html"), os.path.join(directory, "plain.png")
    b.open(url)
    fill = b.run("const p = document.createElement('canvas').getContext('2d'); p.fillStyle = fillOf(0);"
                 "p.fillRect(0, 0, 1, 1); return new Uint32Array(p.getImageData(0, 0, 1, 1).data.buffer)[0]")
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1500,1000",
                    "--user-data-dir=" + os.path.join(directory, "home"), "--screenshot=" + png, url],
                   check=True, capture_output=True, timeout=60)
    wide, high = pixels(b, Path(png).read_bytes())
    assert wide == 1500 and high > 800, "size of the picture"
    head = b.run("return Array.from({ length: 40 }, (_, y) => row(y)).filter((n) => n > 2).length")
    assert head > 15, "no title at the top"
    root = b.run("return Array.from({ length: 80 }, (_, i) => size[1] - 1 - i).filter((y) => at(750, y) === arguments[0]).length",
                 fill)
    assert 16 <= root <= 19, "%d lines of the root's colour at the bottom" % root
    empty = b.run("let n = 0, most = 0; for (let y = 0; y < size[1]; y++) most = Math.max(most, n = row(y) > 1 ? 0 : n + 1);"
                  "return most")
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
    attack = ["</script><script>window.hit = 1</script>", "<img src=x onerror=window.hit=1>", "<!--<script>",
              "\u2028window.hit=1//\u202e", "\"];window.hit=1;[\"", "__proto__", "{{script}}"]
    quoted = ["".join("%%%02x" % byte for byte in name.encode()) for name in attack] + ["%ff%fe%c3"]
    stacks = "".join("%s|script|%s|%s|1;%s 1\n" % (q, q, q, q) for q in quoted)
    evil = {k: quoted[0] for k in ("title", "target", "command", "loss", "unit")}
    b.open(make_page(directory, stacks, "evil.html", **evil))
    for name in attack + ["\ufffd\ufffd\ufffd"]:
        b.run("search(arguments[0].replace(/[^\\w ]/g, '.'))", name)
        b.run("choose(" + NODE + "); zoomTo(chosen)", name, 1)
        equal(b.text("#tip h2"), name, "name in the tip")
        equal(b.text("#crumbs button:last-child"), name, "name in the path")
        settled(b)
    equal(b.text("#title"), attack[0], "title")
    equal(b.text("#loss"), attack[0], "loss line")
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


def big_profile(nodes, seed=7):
    """Stacks whose tree has about so many nodes."""
    rng, lines, made, path = random.Random(seed), [], 0, []
    kinds = ("native", "kernel", "script", "jit", "vm", "c++")
    while made < nodes:
        path = path[:rng.randrange(len(path) + 1)]
        while len(path) < 60 and rng.random() < 0.92:
            f = rng.randrange(20000)
            path.append("function_%d|%s|module_%d" % (f, kinds[f % 6], f % 30))
            made += 1
        lines.append("%s %d\n" % (";".join(path) or "idle", rng.randrange(1, 50)))
    return "".join(lines)


def test_big(b, directory):
    url = make_page(directory, big_profile(210000), "big.html")
    b.open("about:blank")
    b.open(url)
    nodes = b.run("return tree.n")
    assert nodes > 200000, "only %d nodes" % nodes
    settled(b)
    times = b.run("""const time = (f) => { const t = performance.now(); f(); return Math.round(performance.now() - t); };
        const nav = performance.getEntriesByType("navigation")[0];
        return { load: Math.round(nav.loadEventEnd), draw: time(() => draw(performance.now())), search: time(() => search("_1")),
            fold: time(() => setOff(new Set([5]))) }""")
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
        for test in (test_banner, test_drawn, test_tip, test_search, test_zoom, test_keys, test_flip, test_legend, test_phone,
                     test_dark):
            test(b)
            assert_quiet(b)
            print("ok", test.__name__)
        test_hash(b, url)
        assert_quiet(b)
        for test in (test_scroll, test_plain_screenshot, test_print, test_hostile, test_odd_profiles, test_big):
            test(b, directory)
            print("ok", test.__name__)
        test_policy(b, url)


main()
