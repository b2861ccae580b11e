/* SPDX-License-Identifier: Apache-2.0 */
/* All around the picture: path, tip, legend, banner. */
function zoomTo(i, push = true) {
	if (i === zoom)
		return;
	from = span();
	movedAt = performance.now();
	hover = -1;
	changeAround(i, () => {
		zoom = i;
		showCrumbs();
		showMatched();
	});
	if (push)
		writeHash(true);
}

function showCrumbs() {
	const path = [], nav = $("crumbs");
	for (let i = zoom; i; i = tree.parent[i])
		path.unshift(i);
	nav.replaceChildren();
	nav.hidden = $("reset").hidden = !zoom;
	nav.append(crumb(0, nameOf(tree.fn[0])));
	if (path.length > 4)
		nav.append("\u203a", crumb(path[path.length - 5], "\u2026"));
	for (const i of path.slice(-4))
		nav.append("\u203a", crumb(i, nameOf(tree.fn[i])));
}

function crumb(i, text) {
	const b = document.createElement("button");
	b.type = "button";
	b.textContent = text;
	b.title = nameOf(tree.fn[i]);
	b.onclick = () => zoomTo(i);
	return b;
}

function element(tag, text, ...children) {
	const e = document.createElement(tag);
	e.textContent = text;
	e.append(...children);
	return e;
}

const pair = (term, value) => element("div", "", ...(term ? [element("dt", term)] : []), element("dd", value));

function swatch(kind) {
	const e = document.createElement("i");
	e.style.background = palette.fill[kind][2];
	return e;
}

function doubts(f) {
	const flags = field(f, 4), said = [];
	if (flags & GUESS)
		said.push("a guess: found by frame pointers, without unwind information");
	if (flags & APPROX)
		said.push("the runtime tells this position only approximately");
	if (flags & INLINED)
		said.push("inlined into its caller");
	return said.join("; ");
}

function describe(i) {
	const f = tree.fn[i], kind = kindOf(f), facts = element("p", "", swatch(kind)), numbers = document.createElement("dl");
	facts.append([data.kinds[kind], data.strings[field(f, 1)], place(f)].filter(Boolean).join(" \u00b7 "));
	numbers.append(pair("", amount(tree.total[i])), pair("of all", percent(tree.total[i], tree.total[0])));
	if (i)
		numbers.append(pair("of parent", percent(tree.total[i], tree.total[tree.parent[i]])));
	numbers.append(pair("self", percent(tree.self[i], tree.total[0])));
	tip.replaceChildren(element("h2", nameOf(f)), facts, numbers);
	if (doubts(f))
		tip.append(element("p", doubts(f)));
	tip.hidden = false;
}

function putTip(x, y) {
	tip.classList.toggle("docked", touched || narrow.matches);
	const w = tip.offsetWidth, h = tip.offsetHeight, below = y + 18 + h <= innerHeight;
	tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - w - 8)) + "px";
	tip.style.top = Math.max(8, below ? y + 18 : y - h - 12) + "px";
}

function hoverAt(i, x, y) {
	if (i !== hover) {
		hover = i;
		if (i >= 0)
			describe(i);
		redraw();
	}
	tip.hidden = i < 0;
	if (i >= 0)
		putTip(x, y);
}

function choose(i) {
	chosen = i;
	redraw();
	if (i < 0)
		return void (tip.hidden = true);
	reveal(i);
	describe(i);
	const r = rectOf(i);
	putTip(r.x, r.y);
}

function setOff(kinds) {
	const at = originOf(zoom);
	off = kinds;
	tree = off.size ? foldTree(whole, off) : whole;
	zoom = viewOf(at);
	hover = chosen = -1;
	refresh();
	writeHash(false);
}

function toggleKind(kind, only) {
	const all = data.kinds.map((_, k) => k).filter((k) => k), next = new Set(off);
	if (only)
		return setOff(new Set(off.size === all.length - 1 && !off.has(kind) ? [] : all.filter((k) => k !== kind)));
	if (!next.delete(kind))
		next.add(kind);
	setOff(next);
}

function kindSums() {
	const self = data.kinds.map(() => 0), frames = data.kinds.map(() => 0);
	for (let i = 1; i < whole.n; i++) {
		self[kindOf(whole.fn[i])] += whole.self[i];
		frames[kindOf(whole.fn[i])]++;
	}
	return { self, frames };
}
const sums = kindSums();

function chip(kind) {
	const b = element("button", "", swatch(kind), data.kinds[kind]);
	if (sums.self[kind])
		b.append(element("small", percent(sums.self[kind], whole.total[0])));
	b.type = "button";
	b.ariaPressed = String(!off.has(kind));
	b.title = "Own time of " + data.kinds[kind] + " frames. Click: fold them into their callers. Shift-click: only these.";
	b.onclick = (e) => toggleKind(kind, e.shiftKey);
	b.onpointerenter = (e) => e.pointerType === "mouse" && setSpot(kind);
	b.onpointerleave = () => setSpot(-1);
	return b;
}

function setSpot(kind) {
	spot = off.has(kind) ? -1 : kind;
	redraw();
}

function showLegend() {
	$("legend").replaceChildren();
	$("shares").replaceChildren();
	sums.frames.forEach((frames, kind) => {
		if (!frames)
			return;
		$("legend").append(chip(kind));
		const bar = swatch(kind);
		bar.style.flexGrow = sums.self[kind];
		bar.style.opacity = off.has(kind) ? 0.25 : 1;
		$("shares").append(bar);
	});
}

function facts() {
	const m = data.meta, out = [];
	if (m.duration)
		out.push(m.duration.toFixed(m.duration < 10 ? 1 : 0) + " s");
	if (m.frequency)
		out.push(Number(m.frequency.toPrecision(4)) + " Hz");
	if (m.start)
		out.push(new Date(m.start).toISOString().slice(0, 16).replace("T", " ") + " UTC");
	return out;
}

function showBanner() {
	const m = data.meta;
	document.title = [m.title || "yrt", m.target].filter(Boolean).join(" \u00b7 ");
	$("title").textContent = m.title || "yrt";
	$("target").textContent = m.target || "";
	$("facts").append(element("b", amount(whole.total[0])), ...facts().map((s) => " \u00b7 " + s));
	$("command").textContent = $("command").title = m.command || "";
	$("loss").textContent = m.loss || "";
	const some = (flag) => data.functions.some((v, i) => i % FIELDS === 4 && v & flag);
	const marks = [some(GUESS) && "? guessed frame", some(APPROX) && "~ approximate line"].filter(Boolean);
	$("marks").textContent = marks.join(", ");
	$("marks").hidden = !marks.length;
}

function refresh() {
	$("flip").textContent = flame ? "Icicle" : "Flame";
	showLegend();
	showCrumbs();
	showMatched();
	layout();
	reveal(zoom);
	redraw();
}
