# SPDX-License-Identifier: Apache-2.0
"""What the tests of the flame graph page share: pages of given stacks in headless Chromium, and what is drawn there."""

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from pages import MKPROFILE, big_profile  # noqa: E402, F401
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


def table(b):
    """The rows of the table: [[cells]], as far as they are in the page."""
    return b.run("return [...document.querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
                 ".filter((r) => r.length)")


def names(b):
    return [row[2] for row in table(b)]


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


def assert_quiet(b):
    equal([m["message"] for m in b.log()], [], "messages of the console")


def main(run):
    """Calls run(browser, directory) with a light page of STACKS open."""
    with tempfile.TemporaryDirectory(prefix="yrt-page-") as directory, Browser() as b:
        b.media(prefers_color_scheme="light")
        b.open(make_page(directory, STACKS))
        run(b, directory)
