# SPDX-License-Identifier: Apache-2.0
"""
The flame graph page where it is hard, in headless Chromium: small windows, paper, screenshots, deep, empty and big
profiles, and hostile names, which stay text.
"""
import base64
import os
import re
import subprocess
from pathlib import Path

from page import (
    NODE,
    assert_in_window,
    assert_quiet,
    big_profile,
    click,
    equal,
    main,
    make_page,
    names,
    pixels,
    rect,
    settled,
    zoomed,
)


def test_size(directory):
    size = os.path.getsize(make_page(directory, "", "empty.html")[7:])
    assert size <= 100 << 10, "the page without data has %d bytes" % size


TALL = ";".join("f%d" % i for i in range(100))
ODD_SIZES = ((1500, 1000), (800, 500), (390, 844, 3, True), (844, 390, 3, True), (320, 240))


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
        timeout=300,
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


def run(b, directory):
    test_size(directory)
    for test in (
        test_scroll,
        test_plain_screenshot,
        test_print,
        test_hostile,
        test_odd_profiles,
        test_big,
    ):
        test(b, directory)
        print("ok", test.__name__)


main(run)
