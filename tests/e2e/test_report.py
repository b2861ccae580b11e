# SPDX-License-Identifier: Apache-2.0
"""
yrt report: each rule on what was recorded of its planted program and of its near miss (fixtures/report/record.sh), the
formats, bad input, and one live run whose cause cannot be missed.
"""

import functools
import html
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import yrt
from page import MKPROFILE
from reports import CIRCUMSTANCES, FIXTURES, PROBLEMS, report, rules

PLACELESS = {"run-queue", "machine-busy", "language-unread"}  # site none


@functools.cache
def findings(folder):
    return json.loads(report(folder, "-f", "json").stdout)["findings"]


def names(folder):
    return [finding["rule"] for finding in findings(folder) if finding["rule"] not in CIRCUMSTANCES]


def test_every_rule_has_its_programs():
    missing = [f"{rule}/{which}" for rule in rules() if rule not in CIRCUMSTANCES for which in ("planted", "near")
               if not os.path.isfile(os.path.join(FIXTURES, rule, which, "counters.json"))]
    assert not missing, f"rules without recorded programs: {missing} (fixtures/report/record.sh)"


def test_planted_is_found_first():
    wrong = []
    for rule in rules():
        if rule not in CIRCUMSTANCES:
            found = names(os.path.join(FIXTURES, rule, "planted"))
            if found[:1] != [rule]:
                wrong.append(f"{rule}: {found}")
    assert not wrong, wrong


def test_near_miss_is_not_found():
    wrong = [rule for rule in rules()
             if rule not in CIRCUMSTANCES and rule in names(os.path.join(FIXTURES, rule, "near"))]
    assert not wrong, wrong


def test_computing_is_no_fault():
    """Where the CPU time goes, and that there is no more of it, is remarked on: that alone is no waste."""
    for name in ("hot-function/planted", "hot-function/near", "busy-thread/planted", "run-queue/planted",
                 "string-scanned/near", "list-searched/near"):
        found = findings(os.path.join(FIXTURES, name))
        assert found and {f["severity"] for f in found} == {"remark"}, (name, found)


def test_hot_function_is_the_verdict():
    """What computes all the time is said before that no rule knows it as a fault; of what hardly computes it is not."""
    found = json.loads(report(os.path.join(FIXTURES, "hot-function", "planted"), "-f", "json").stdout)["verdict"]
    assert re.match(r"Where the CPU goes: 99 % of it to slow_hash .*\. No fault that a rule knows in planted", found)
    found = json.loads(report(os.path.join(FIXTURES, "hot-path", "planted"), "-f", "json").stdout)["verdict"]
    assert found.startswith("No fault that a rule knows in planted"), found


def test_comparing_one_by_one_is_said():
    """What a hot function calls decides what may be changed: it compares texts itself, or that is a sort's."""
    for below, said in (("unique|native|app|/srv/app.c|22;__strcmp_avx2|native|libc.so.6 50", True),
                        ("unique|native|app|/srv/app.c|22;qsort|native|libc.so.6;by|native|app;f|native|app 50", False),
                        ("unique|native|app|/srv/app.c|22;checksum|native|app 50", False)):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
                json.dump({"target": "app", "facts": {"cpu": 0.9, "queue": 0, "wall.waiting": 0}}, file)
            stacks = "main|native|app;unique|native|app|/srv/app.c|22 50\nmain|native|app;" + below + "\n"
            with open(os.path.join(folder, "clock.yrt"), "wb") as file:
                subprocess.run([MKPROFILE, "yrt", "unit=samples", 'stats={"event": "clock"}'], input=stacks.encode(),
                               stdout=file, check=True)
            found = findings(folder)[0]
            assert found["rule"] == "hot-function" and ("the key of a map or a set" in found["change"]) == said, found


def test_where_and_words():
    """A finding names the function and the line, has all texts filled in, and an interval around its share."""
    bad = []
    for rule in rules():
        if rule in CIRCUMSTANCES:
            continue
        for finding in findings(os.path.join(FIXTURES, rule, "planted")):
            texts = [finding[key] for key in ("title", "why", "change", "command")] + finding["against"]
            if any("not known]" in text or not text for text in texts):
                bad.append((rule, finding["rule"], texts))
            if not 0 <= finding["share_low"] <= finding["share"] <= finding["share_high"] <= 1:
                bad.append((rule, finding["rule"], finding["share"]))
            if finding["view"] and not finding["where"] and finding["rule"] not in PLACELESS:
                bad.append((rule, finding["rule"], "nowhere"))
    assert not bad, bad


def site(rule):
    found = findings(os.path.join(FIXTURES, rule, "planted"))
    return next(f for f in found if f["rule"] == rule)["where"][0]


def test_function_and_line():
    for rule, function, line in (("python-regex-compiled", r"^handle \(planted.py:7\)", 8),
                                 ("hot-function", r"^slow_hash$", 10),
                                 ("lock-convoy", r"^update_stats$", 13),
                                 ("java-exceptions", r"^planted\.parse$", 8),
                                 ("python-asyncio-blocked", r"^handle \(planted.py:8\)", 9),
                                 ("memory-kept", r"^record$", 18),
                                 ("memory-kept-collected", r"^planted\.place$", 17),
                                 ("string-scanned", r"^words$", 11),
                                 ("list-searched", r"^unique \(planted.py:5\)", 8),
                                 ("connection-pool", r"^order \(planted.py:17\)", 18),
                                 ("go-connection-pool", r"^main\.order$", 37),
                                 ("memory-leak", r"^message_read$", 14)):
        where = site(rule)
        assert re.search(function, where["function"]), (rule, where)
        assert where["line"] in range(line - 1, line + 3), (rule, where)
        assert os.path.basename(where["file"]).startswith("planted."), (rule, where)


def test_who_ends_waits():
    """Whose work a place waits for, of a recording; and through a pool that waits for a third thread itself."""
    found = findings(os.path.join(FIXTURES, "thread-wait", "planted"))[0]
    assert found["rule"] == "thread-wait" and re.search(
        r"was ended by _WorkItem\.run \(thread\.py:\d+\)\. On average 1\.\d threads are in _WorkItem\.run .*, "
        r"9\d % of that time in sign \(planted\.py:\d+\)", found["why"]), found["why"]
    ask = "clone3|native|libc.so.6;customer|native|app;place|native|app|/srv/app.c|4;pthread_join|native|libc.so.6"
    packs = "clone3|native|libc.so.6;packer|native|app;have_it_signed|native|app;pthread_join|native|libc.so.6"
    signs = "clone3|native|libc.so.6;signer|native|app;write_signature|native|app;fsync|native|libc.so.6"
    answer = "waiting;wake|kernel;answer|native|app"
    waits = f"{ask};[woken by packs]|{answer};packer|native|app;clone3|native|libc.so.6 9000000000\n" \
            f"{ask};[woken by an interrupt]|waiting;tick|kernel 1000000000\n" \
            f"{packs};[woken by signs]|{answer};signer|native|app;clone3|native|libc.so.6 8000000000\n" \
            f"clone3|native|libc.so.6;packer|native|app;next|native|app;[woken by customer]|{answer};" \
            "place|native|app;customer|native|app;clone3|native|libc.so.6 500000000\n"
    wall = f"{ask};[join]|waiting 40000000000\n{packs};[join]|waiting 9000000000\n{signs};[disk]|waiting 8000000000\n"
    facts = {"cpu": 0.01, "queue": 0, "wall.waiting": 5.7, "wall.queued": 0, "threads": 6}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
            json.dump({"target": "app", "facts": facts}, file)
        for name, event, stacks in (("wakers", "wait", waits), ("wall", "wall", wall)):
            with open(os.path.join(folder, f"{name}.yrt"), "wb") as file:
                subprocess.run([MKPROFILE, "yrt", "unit=nanoseconds", "duration=10", "frequency=199",
                                f'stats={{"event": "{event}"}}'], input=stacks.encode(), stdout=file, check=True)
        found = next(f for f in findings(folder) if f["rule"] == "thread-wait")
    assert "90 % of the time of these waits was ended by packer, which waits for signer." in found["why"], found
    assert "On average 0.8 threads are in signer, 100 % of that time in write_signature" in found["why"], found
    assert found["change"].startswith("Make write_signature faster"), found


def test_what_grows_has_a_picture():
    """Of a heap of Python no stack is known: what has grown is drawn, by what keeps it."""
    kept = os.path.join(FIXTURES, "memory-kept", "planted")
    rows = re.findall(r"^ +[0-9.]+ .*$", report(kept).stdout.split("\n## 2.")[0], re.MULTILINE)
    assert any("trail: list" in row for row in rows) and any("[]: __main__.Event" in row for row in rows), rows
    page = report(kept, "-f", "html").stdout
    assert "what has grown, by what keeps it alive" in page and re.search(r"<title>trail: list\n", page), page[:2000]


def test_leak_names_where_it_is_added():
    for rule, place in (("memory-kept", "record (planted.py:19)"),
                        ("memory-kept-collected", "planted.place (planted.java:19)")):
        title = findings(os.path.join(FIXTURES, rule, "planted"))[0]["title"]
        assert title.endswith(", added in " + place), title


def test_place_is_the_programs_own():
    """Not a library's, the interpreter's, or libc's function."""
    for rule in rules():
        app = os.path.join(FIXTURES, rule, "planted.app")
        if os.path.isfile(app) and yrt.read(app).startswith(("flask-", "django-")) and rule != "django-debug":
            assert site(rule)["file"].endswith(("/flask_app.py", "/django_app.py")), (rule, site(rule))


def test_holder():
    why = findings(os.path.join(FIXTURES, "lock-convoy", "planted"))[0]["why"]
    assert "update_stats" in why and "that released it" in why, why


def test_evidence_chooses_the_advice():
    """Who has the connections of a pool: does it use them, or ask somebody else meanwhile?"""
    for rule, holds, advice in (("connection-pool", r"SQLAlchemy.* 2\.0 of them are in order \(planted\.py:20\)",
                                 r"^Do that \(ask_service \(planted\.py:14\)\) before .* A larger pool only"),
                                ("go-connection-pool", r"database/sql .* 2\.0 of them are in main\.order",
                                 r"^The connections are used all the time\. .* larger SetMaxOpenConns\(\)\.$"),
                                ("go-mutex/waits",
                                 r"are in main\.\(\*rates\)\.get \(waits\.go:35\), .* asks another program over HTTP",
                                 r"^Do not wait while the mutex is held: .*\(waits\.go:35\)"),
                                ("malloc-churn/copies", "main", r"^Do not copy: main \(copies\.cc:22\)")):
        found = findings(os.path.join(FIXTURES, rule if "/" in rule else f"{rule}/planted"))[0]
        assert re.search(holds, found["why"]) and re.search(advice, found["change"]), found


def test_cause_comes_before_symptom():
    """A loop under a mutex is what has to change, not the mutex."""
    found = findings(os.path.join(FIXTURES, "go-mutex", "planted"))[0]
    assert re.match(r"\d+ % of the CPU time goes to main\.add \(planted\.go:15\), under a mutex", found["title"]), found
    assert "wait on average for the mutex in main.add (planted.go:14)" in found["why"], found


def test_what_a_finding_replaces_is_not_healthy():
    healthy = [json.loads(report(os.path.join(FIXTURES, "go-mutex", which), "-f", "json").stdout)["healthy"]
               for which in ("planted", "near")]
    praised = ["Threads do not wait for locks." in texts for texts in healthy]
    assert praised == [False, True], healthy


def test_what_is_not_there_is_not_praised():
    """A program whose stacks have no function of a database's library may use one that no rule knows."""
    praise = "No time to speak of is spent waiting for databases."
    for folder, is_there in ("fsync/planted", False), ("go-connection-pool/near", True):
        healthy = json.loads(report(os.path.join(FIXTURES, folder), "-f", "json").stdout)["healthy"]
        assert (praise in healthy) == is_there, (folder, healthy)


def test_servers_that_are_not_there_are_not_praised():
    of_servers = [json.loads(report(os.path.join(FIXTURES, rule, "near"), "-f", "json").stdout)["healthy"]
                  for rule in ("redis-keys", "python-xml-parsed")]
    praised = ["No command of Redis visits many elements." in texts for texts in of_servers]
    assert praised == [True, False], of_servers


def test_what_functions_are_known_for():
    """A finding of any program also says what its place calls, and what to change there."""
    found = findings(os.path.join(FIXTURES, "go-reflection-json", "near"))
    found = next(f for f in found if f["rule"] == "hot-function")
    assert "sort.Strings, which sorts." in found["why"] and found["change"].startswith("Sort once"), found
    path = next(f for f in findings(os.path.join(FIXTURES, "hot-path", "planted")) if f["rule"] == "hot-path")
    assert ", which " not in path["why"] and path["change"].startswith("Nothing that a rule knows"), path
    asked = findings(os.path.join(FIXTURES, "task-answer-wait", "planted"))[0]
    assert asked["title"].endswith("in main.ask (planted.go:16), mostly in net/http.Get"), asked


def test_the_line_and_who_calls():
    """A place has the text of its line, unless its file is newer than the recording; and who calls it."""
    folder = os.path.join(FIXTURES, "list-searched", "planted")
    path = site("list-searched")["file"]
    made = os.path.dirname(path)
    try:
        os.makedirs(made, exist_ok=True)
        shutil.copy(os.path.join(FIXTURES, "list-searched", "planted.py"), path)
        newer = json.loads(report(folder, "-f", "json").stdout)["findings"][0]
        os.utime(path, (1, 1))
        older = json.loads(report(folder, "-f", "json").stdout)["findings"][0]
        shown = report(folder).stdout
    finally:
        shutil.rmtree(made)
    assert "text" not in newer["where"][0], newer
    with open(os.path.join(FIXTURES, "list-searched", "planted.py")) as file:
        lines = [line.strip() for line in file]
    for place in older["where"][0], older["called_by"][0]:
        assert place["text"] == lines[place["line"] - 1], (place, lines)
    assert older["called_by"][0]["function"].startswith("<module> "), older
    leak = findings(os.path.join(FIXTURES, "memory-leak", "planted"))[0]
    assert [(c["function"], c["line"]) for c in leak["called_by"]] == [("handle", 24), ("main", 39)], leak
    assert f"- where: `{older['where'][0]['function']}`" in shown and "- called by `<module> " in shown, shown


def test_one_cause_is_one_finding():
    """What only names a place that another finding explains is said with that one."""
    found = findings(os.path.join(FIXTURES, "python-json-parsed", "planted"))
    places = [(f["where"][0]["function"], f["rule"]) for f in found if f["where"]]
    explained = {place for place, rule in places if not rule.startswith("hot-")}
    assert not [place for place, rule in places if rule.startswith("hot-") and place in explained], places


def test_shares_have_one_base():
    """The tree of a finding begins with its share, and the text says what 100 % are."""
    folder = os.path.join(FIXTURES, "python-regex-compiled", "planted")
    first, shown = findings(folder)[0], report(folder).stdout
    tree = shown.split("```")[1].split("\n")
    assert f"{100 * first['share']:.1f}" == tree[1].split()[0], (first["share"], tree[1])
    assert "100 % of CPU time are the " in shown.split("## 1.")[0], shown[:900]


def test_exit_code_is_the_verdict():
    assert report(os.path.join(FIXTURES, "lock-convoy", "planted"), "-f", "json").returncode == PROBLEMS
    # where all threads do the same, one interpreter is what there is: no fault
    assert report(os.path.join(FIXTURES, "python-gil", "planted"), "-f", "json").returncode == 0
    assert report(os.path.join(FIXTURES, "idle", "planted"), "-f", "json").returncode == 0


def test_markdown():
    text = report(os.path.join(FIXTURES, "python-regex-compiled", "planted")).stdout
    assert text.startswith("# "), text[:200]
    for part in ("handle (planted.py:7)", "- change: ", "- shown alone by: ", "Looked at and found healthy"):
        assert part in text, (part, text)


def test_page():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        report(os.path.join(FIXTURES, "python-regex-compiled", "planted"), "-o", path, "-q")
        with open(path, encoding="utf-8") as file:
            page = file.read()
    assert page.count("<article") >= 1 and 'id="view-clock"' in page, page[:500]
    assert "Content-Security-Policy" in page and "http://" not in re.sub(r"http://www.w3.org/\S*", "", page)
    for data in re.findall(r'<script id="(?:view-[a-z]+|page)" type="application/json">(.*?)</script>', page, re.S):
        json.loads(data)


def test_page_of_counters():
    """Findings by counters alone whose stacks are those of another view."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        for rule, view in (("memory-leak", "leak"), ("memory-kept-collected", "made")):
            report(os.path.join(FIXTURES, rule, "planted"), "-o", path, "-q")
            assert f'data-view="{view}"' in yrt.read(path), rule


def test_hostile_names():
    """What a target calls itself is text, in every format."""
    name = '</script><img src=x onerror=alert(1)>`*#\x1b[31m'
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
            json.dump({"target": name, "facts": {"fds.part": 0.99, "fds": 99, "fds.limit": 100, "fds.pid": 7,
                                                  "fds.sockets": 1, "thread.name": name}}, file)
        page = report(folder, "-o", "-", "-f", "html").stdout
        text = report(folder, "-o", "-", "-f", "md").stdout
        found = json.loads(report(folder, "-f", "json").stdout)
    assert "<img" not in page and "\x1b" not in page + text and "\x1b" not in json.dumps(found)
    assert [f["rule"] for f in found["findings"]] == ["fd-limit"], found


def test_bad_evidence():
    with tempfile.TemporaryDirectory() as folder:
        for text in ("{", '{"facts": 3}', '{"facts": {"cpu": []}}'):
            with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
                file.write(text)
            assert "counters.json" in report(folder, codes=(yrt.INPUT,)).stderr
        os.remove(os.path.join(folder, "counters.json"))
        shutil.copy(os.path.join(FIXTURES, "hot-function", "planted", "clock.yrt"), folder)
        with open(os.path.join(folder, "io.yrt"), "wb"):
            pass
        found = json.loads(report(folder, "-f", "json").stdout)
        assert [v["name"] for v in found["views"]] == ["clock"], found["views"]
        assert [s for s in found["not_looked_at"] if s.endswith("io.yrt is empty")], found["not_looked_at"]
        assert "io.yrt is empty" in report(os.path.join(folder, "io.yrt"), codes=(yrt.INPUT,)).stderr
    report("/nonexistent.yrt", codes=(yrt.INPUT,))
    report("-p", "1", "/nonexistent.yrt", codes=(yrt.USAGE,))
    report(codes=(yrt.USAGE,))
    report("-a", "-p", "1", codes=(yrt.USAGE,))


RULE = """rule mine
	title A title
	when fds.part > 50%
	weight fds.part
	why Because.
	change Nothing.
	show true
"""


def test_rules_of_ones_own():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mine.rule")
        with open(path, "w", encoding="utf-8") as file:
            file.write(RULE)
        known = os.path.join(FIXTURES, "fd-limit", "planted")
        found = json.loads(report(known, "--rules", folder, "-f", "json").stdout)["findings"]
        assert "mine" in [f["rule"] for f in found], found
        for line, wrong, expected in ((2, "\ttitel A title", "a key of a rule"),
                                      (3, "\twhen fds.part >", "a number or a name"),
                                      (3, '\tstack "[" leaf', "regular expression"),
                                      (3, '\tstack nokind"x"', "a kind of frames"),
                                      (3, '\tstack "x', "closing quote"),
                                      (3, "\tmodule x", "a quoted regular expression"),
                                      (4, "\tseverity awful", "problem, waste or remark"),
                                      (1, 'about "x" : what', "TERM : WHAT : CHANGE"),
                                      (1, "loop x", "a kind of frames, or a quoted")):
            lines = RULE.splitlines()
            lines.insert(line - 1, wrong)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            error = report("--list", "--rules", folder, codes=(yrt.INPUT,)).stderr
            assert f"mine.rule:{line}:" in error and expected in error, (wrong, error)


def test_explain():
    text = report("--explain", "python-gil").stdout
    assert "rule python-gil" in text and "take_gil" in text and "python.rule" in text, text
    assert "--list" in report("--explain", "nothing", codes=(yrt.USAGE,)).stderr


def measured_now():
    """One function of one thread is all that happens."""
    with yrt.Fixture("deep30", seconds=1000) as fixture, tempfile.TemporaryDirectory() as folder:
        fixture.release()
        kept = os.path.join(folder, "kept")
        found = json.loads(report("-p", fixture.pid, "-d", 12, "-q", "-f", "json", "--keep", kept).stdout)
        again = json.loads(report(kept, "-f", "json").stdout)
    assert [f["rule"] for f in again["findings"]] == [f["rule"] for f in found["findings"]]
    return found


def test_live():
    found = measured_now()
    assert [v["name"] for v in found["views"]][:1] == ["wall"], found["views"]
    assert found["verdict"] and found["steps"] and "deep30" in found["target"], found


@yrt.measured
def test_live_finding():
    found = measured_now()
    assert "hot-function" in [f["rule"] for f in found["findings"]], found
    hot = next(f for f in found["findings"] if f["rule"] == "hot-function")
    assert hot["where"][0]["function"] == "burn", hot["where"]  # what the innermost function of the chain does


def test_workers():
    """A master that does nothing is looked at with its children; the commands that are named say so."""
    master = subprocess.Popen(["sh", "-c", "while :; do :; done & wait"], start_new_session=True)
    try:
        yrt.until(lambda: yrt.read(f"/proc/{master.pid}/task/{master.pid}/children").strip(), "a child")
        found = json.loads(report("-p", master.pid, "-d", 6, "-q", "-f", "json").stdout)
    finally:
        os.killpg(master.pid, signal.SIGKILL)
        master.wait()
    assert any("has 1 child," in step for step in found["steps"]), found["steps"]
    assert found["facts"]["processes"] == 2 and found["facts"]["pid"] == f"{master.pid} -s", found["facts"]


@yrt.measured
def test_machine():
    """-a looks at those that do something: at least at this one."""
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        found = json.loads(report("-a", "-d", 6, "-q", "-f", "json").stdout)
    finally:
        busy.kill()
        busy.wait()
    assert any("of the machine" in step for step in found["steps"]), found["steps"]
    assert found["facts"]["processes"] >= 1 and [v["name"] for v in found["views"]][:1] == ["wall"], found["views"]


def test_watch():
    """A report each time that the condition holds; the name of its file has the pid."""
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            report("-p", busy.pid, "--watch", "rss > 1k", "-n", 1, "-d", 5, "-q", "-o", os.path.join(folder, "%p.json"))
        finally:
            busy.kill()
            busy.wait()
        with open(os.path.join(folder, f"{busy.pid}.json"), encoding="utf-8") as file:
            assert json.load(file)["facts"]["processes"] == 1
    report("-p", busy.pid, "--watch", "rss > 1k", codes=(yrt.NO_PROCESS,))
    report("-p", os.getpid(), "--watch", "nonsense", codes=(yrt.USAGE,))
    report("--watch", "load > 1", "/nonexistent.yrt", codes=(yrt.USAGE,))


def test_not_permitted():
    """Counters alone: nothing is called healthy that was not seen, and the exit code says so."""
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"], user=65534, group=65534)
    try:
        result = subprocess.run(
            [yrt.YRT, "report", "-p", str(busy.pid), "-d", "5", "-q", "-f", "json"], user=65534, group=65534,
            capture_output=True, text=True, timeout=300, env={"PATH": os.environ["PATH"]})
    finally:
        busy.kill()
        busy.wait()
    found = json.loads(result.stdout)
    assert result.returncode == yrt.PERMISSION, result
    assert "more was not permitted" in found["verdict"] and found["not_looked_at"] and not found["views"], found


def test_core():
    """The verdict is the first line of a dump."""
    for rule, verdict in (
            ("core-null", r"^count_of \(planted.c:15\) reads through a null pointer, plus 64: "
                          r"field `count` of `struct order` \(SIGSEGV\)$"),
            ("core-stack-overflow", r"^the stack of thread \d+ is full: sum \(planted.c:11\) calls itself"),
            ("core-heap", r"^double free or corruption \(out\): ended in ")):
        found = json.loads(report(os.path.join(FIXTURES, rule, "planted"), "-f", "json").stdout)
        assert re.search(verdict, found["verdict"]), found["verdict"]
    assert "the last good chunk before it" in found["findings"][0]["why"], found["findings"][0]["why"]
    for rule, marked in (("core-null", ["count_of  planted.c:15"]), ("core-heap", ["main  planted.c:21"]),
                         ("core-stack-overflow", ["sum  planted.c:11", "main  planted.c:19"])):
        folder = os.path.join(FIXTURES, rule, "planted")
        rows = report(folder, "-f", "md").stdout.split("```")[1].strip("\n")
        assert [r[2:] for r in rows.split("\n") if r[0] == ">"] == [f"{place}  [planted]" for place in marked], rows
        assert "  (4 frames of libraries" in rows or rule != "core-heap", rows
        assert "  (this frame 1019 more times)" in rows or rule != "core-stack-overflow", rows
        assert rows in html.unescape(report(folder, "-f", "html").stdout), rows


def test_consequences_come_behind():
    """Waiting for the GIL, or a CPU, follows from what takes the CPU time."""
    both = findings(os.path.join(FIXTURES, "python-gil", "planted"))
    assert both[0]["rule"] == "python-gil", both
    text = RULE.replace("when fds.part > 50%", 'view clock\n\tstack "."\n\twhen share.low > 50%').replace(
        "weight fds.part\n\t", "")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "mine.rule"), "w", encoding="utf-8") as file:
            file.write(text)
        found = json.loads(report(os.path.join(FIXTURES, "python-gil", "planted"), "--rules", folder, "-f",
                                  "json").stdout)["findings"]
    assert [f["rule"] for f in found][:2] == ["mine", "python-gil"], [f["rule"] for f in found]


def test_tasks():
    """The command that lists goroutines takes what the report asks it for."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "near")
        subprocess.run(["go", "build", "-o", program, os.path.join(FIXTURES, "go-allocation", "near.go")],
                       check=True)
        running = subprocess.Popen([program])
        try:
            for seconds in (5, 20, 60):  # a busy machine needs more
                found = json.loads(report("-p", running.pid, "-d", seconds, "-q", "-f", "json").stdout)
                if "tasks" in [v["name"] for v in found["views"]]:
                    break
        finally:
            running.kill()
            running.wait()
    assert "tasks" in [v["name"] for v in found["views"]], (found["not_looked_at"], found["steps"])


def test_process_that_is_not_there():
    report("-p", "999999999", "-d", 5, "-q", codes=(yrt.NO_PROCESS,))


def test_target_that_ends():
    """The report is of what was seen until then, and says so."""
    target = subprocess.Popen(["sleep", "1000"])
    running = subprocess.Popen([yrt.YRT, "report", "-p", str(target.pid), "-d", "10", "-f", "json"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    steps = []
    while not steps or "counters, " not in steps[-1]:
        steps.append(running.stderr.readline())
        assert steps[-1], steps
    target.kill()
    target.wait()
    output, more = running.communicate(timeout=300)
    found = json.loads(output)
    assert running.returncode == 0 and "sleep (pid" in found["target"], (found, more)
    assert any("the target ended while it was looked at" in s for s in found["not_looked_at"]), found["not_looked_at"]
    assert "growth.rss" not in found["facts"], found["facts"]


def measure(rule, which, folder):
    environment = {**os.environ, "YRT": yrt.YRT, "RECORD_TO": folder}
    subprocess.run(["sh", os.path.join(FIXTURES, "record.sh"), rule, which], env=environment, check=True, timeout=300)
    return names(folder)


@yrt.measured
def test_live_programs():
    """Each planted program and near miss is measured now."""
    wrong = []
    for rule in rules():
        if rule in CIRCUMSTANCES:
            continue
        with tempfile.TemporaryDirectory() as folder:
            planted = measure(rule, "planted", os.path.join(folder, "planted"))
            near = measure(rule, "near", os.path.join(folder, "near"))
        wrong += [f"{rule}: {planted}"] if planted[:1] != [rule] else []
        wrong += [f"{rule} in its near miss"] if rule in near else []
        yield f"{rule}: {planted}; near {near}"
    assert not wrong, wrong


yrt.main(globals())
