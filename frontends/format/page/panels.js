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
		lens = null;
		showCrumbs();
		showMatched();
	});
	if (push)
		writeHash(true);
}

/* Another view; f is the function of callers. */
function show(name, f = focused) {
	if (name === shown && f === focused)
		return;
	if (shown !== "callers")
		came = name === "callers" || name === "table" ? shown : name;
	if (!apart())
		kept = originOf(zoom);
	tip.hidden = true;
	[shown, focused] = [name, f];
	rebuild();
	zoom = apart() ? 0 : viewOf(kept);
	refresh();
	if (name !== "table")
		reveal(zoom);
	else
		view.scrollTop = 0;
	focusGraph();
	writeHash(true);
}

const leave = () => show(came);

function button(text, act, title = "") {
	const b = document.createElement("button");
	b.type = "button";
	b.textContent = text;
	b.title = title;
	b.onclick = act;
	return b;
}

function showCrumbs() {
	const path = [], nav = $("path"), crumb = (i, text) => button(text, () => zoomTo(i), nameOf(tree.fn[i]));
	nav.replaceChildren();
	$("crumbs").hidden = $("reset").hidden = shown !== "callers" && !zoom;
	$("reset").textContent = shown === "callers" ? "Back" : "Reset zoom";
	if (shown === "callers") {
		const share = percent(tree.nowTotal[0], plain.nowTotal[0]);
		return nav.append(element("span", "Callers \u2191 callees \u2193 of"),
			button(nameOf(focused), leave, nameOf(focused)), element("small", share));
	}
	for (let i = zoom; i; i = tree.parent[i])
		path.unshift(i);
	nav.append(crumb(0, nameOf(tree.fn[0])));
	const last = narrow.matches ? 2 : 4;
	if (path.length > last)
		nav.append("\u203a", crumb(path[path.length - last - 1], "\u2026"));
	for (const i of path.slice(-last))
		nav.append("\u203a", crumb(i, nameOf(tree.fn[i])));
	if (zoom) {
		const around = () => show("callers", canon[tree.fn[zoom]]);
		const b = button("\u21c5 callers", around, "All callers and callees of this function (c)");
		b.className = "callers";
		nav.append(b);
	}
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
	const [, , , inlined, approx] = data.tiers[f] || [];
	if (approx)
		said.push(`of all its samples ${approx} % are approximate`);
	if (inlined)
		said.push(`inlined into its caller in ${inlined} % of its samples`);
	else if (flags & INLINED && !data.tiers[f])
		said.push("inlined into its caller");
	return said.join("; ");
}

/* What a function is; of one that was compiled in several ways how much of it. */
function kindsOf(f) {
	const shares = (data.tiers[f] || []).slice(0, 3);
	const said = shares.map((share, i) => share && `${wordOf(f, SCRIPT + i)} ${share} %`).filter(Boolean).reverse();
	return said.join(", ") || wordOf(f, kindOf(f));
}

const probability = (p) => (p < 0.0001 ? "<0.0001" : p < 0.05 ? p.toFixed(4) : "may be chance");

/* What a test of the whole function found, wherever it is called. */
function chanceLines(f) {
	const [self, total] = chancesOf(f);
	return !data.chance?.[f] ? [] : [["p of total", probability(total || 1)], ...(self ? [["p of self", probability(self)]] : [])];
}

/* The numbers of a node. Those of a difference are shares: the two sides need not be of one length. */
function numbersOf(i) {
	const all = plain.nowTotal[0], now = tree.nowTotal[i];
	if (isDiff) {
		const base = tree.baseTotal[i];
		return [["before", percent(base, plain.baseTotal[0])], ["after", percent(now, all)], ["change", points(now, base) + " points"],
			["", !base ? "new" : !now ? "vanished" : "\u00d7 " + (now / base).toFixed(2)],
			["", amount(base / (data.baseScale || 1)) + " \u2192 " + amount(now)], ...chanceLines(tree.fn[i])];
	}
	const up = tree.parent[i], out = [["", amount(now)], ["of all", percent(now, all)]];
	if (timesOf(i))
		out.push([data.meta.more, timesOf(i).slice(2)]);
	if (i)
		out.push([tree.sandwich ? "of " + nameOf(focused) : "of parent", percent(now, tree.nowTotal[tree.sandwich ? 0 : up])]);
	return tree.depth[i] < 0 || tree.inverted ? out : [...out, ["self", percent(tree.now[i], all)]];
}

function describe(i) {
	const f = tree.fn[i], kind = kindOf(f), facts = element("p", "", swatch(kind)), numbers = document.createElement("dl");
	facts.append([kindsOf(f), data.strings[field(f, 1)], place(f)].filter(Boolean).join(" \u00b7 "));
	numbers.append(...numbersOf(i).map(([term, value]) => pair(term, value)));
	const name = nameOf(f), short = name.length > LONG ? brief(name, data.kinds[kind]) : name;
	tip.replaceChildren(element("h2", short), ...(short !== name ? [element("p", name)] : []), facts, numbers);
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
	if (isFolded(i))
		openTrunk(true), (chosen = i);
	reveal(i);
	describe(i);
	const r = rectOf(i);
	putTip(r.x, r.y);
}

/* Changes what the trees are made by; what is zoomed to stays. */
function remake(change) {
	const at = apart() ? 0 : originOf(zoom);
	change();
	rebuild();
	zoom = apart() ? 0 : viewOf(at);
	refresh();
	writeHash(false);
}

const setOff = (kinds) => remake(() => (off = kinds));

function toggleKind(kind, only) {
	const all = data.kinds.map((_, k) => k).filter((k) => k), next = new Set(off);
	if (only)
		return setOff(new Set(off.size === all.length - 1 && !off.has(kind) ? [] : all.filter((k) => k !== kind)));
	if (!next.delete(kind))
		next.add(kind);
	setOff(next);
}

/* By kind. Inside a wait is who ended it (--wakers), whose frames have no time of their own. */
function kindSums() {
	const self = data.kinds.map(() => 0), frames = data.kinds.map(() => 0), state = statesOf(whole);
	for (let i = 1; i < whole.n; i++) {
		const kind = kindOf(whole.fn[i]);
		self[state[i] || kind] += whole.now[i];
		frames[kind]++;
	}
	return { self, frames };
}
let sumsOfKinds = kindSums();

function chip(kind) {
	const b = button("", (e) => toggleKind(kind, e.shiftKey),
		"Own time of " + data.labels[kind] + " frames. Click: fold them into their callers. Shift-click: only these.");
	b.append(...(isDiff ? [] : [swatch(kind)]), data.labels[kind]);
	if (sumsOfKinds.self[kind])
		b.append(element("small", percent(sumsOfKinds.self[kind], whole.nowTotal[0])));
	b.ariaPressed = String(!off.has(kind));
	b.onpointerenter = (e) => e.pointerType === "mouse" && setSpot(kind);
	b.onpointerleave = () => setSpot(-1);
	return b;
}

function setSpot(kind) {
	spot = off.has(kind) ? -1 : kind;
	redraw();
}

function addSwitch(text, on, act, title) {
	const b = button(text, act, title);
	b.ariaPressed = String(on);
	b.className = "group";
	$("legend").append(b);
}

const foldRecursion = () => remake(() => (once = !once));

function showLegend() {
	$("legend").replaceChildren();
	$("shares").replaceChildren();
	sumsOfKinds.frames.forEach((frames, kind) => {
		if (!frames)
			return;
		$("legend").append(chip(kind));
		if (isDiff)
			return;
		const bar = swatch(kind);
		bar.style.flexGrow = sumsOfKinds.self[kind];
		bar.style.opacity = off.has(kind) ? 0.25 : 1;
		$("shares").append(bar);
	});
	if (groupOf.some((g, f) => g !== f))
		addSwitch(data.fn.some((f) => kindOf(f) === PROCESS) ? "Group processes" : "Group threads", grouped,
			() => remake(() => (grouped = !grouped)),
			"Draw processes of one program as one, and threads whose names differ only by numbers");
	if (trunk && tree === plain)
		addSwitch("Rows at the root", trunkOpen, () => openTrunk(!trunkOpen), "Show the rows that most stacks share (r)");
	if (hasRecursion())
		addSwitch("Fold recursion", once, foldRecursion, "Draw frames that repeat those under them once: f;f;f as f, a;b;a;b as a;b (u)");
	if (isDiff)
		showScale();
}

const BEYOND = "p<0.05";

/* Of a difference: what the colours mean, and what the widths stand for. */
function showScale() {
	const scale = element("span", "", "gone"), select = document.createElement("select");
	scale.className = "scale";
	for (const colour of palette.change) {
		const e = document.createElement("i");
		e.style.background = colour;
		scale.append(e);
	}
	scale.append("new");
	scale.title = "Blue: a smaller share than before, red: a greater one. The paler, the smaller the change, or the more it may be chance.";
	if (data.chance) {
		const b = button("Beyond chance", () => search(query === BEYOND ? "" : BEYOND), "Mark functions that changed beyond what chance explains");
		b.className = "group";
		b.id = "beyond";
		b.ariaPressed = String(query === BEYOND);
		$("legend").prepend(b);
	}
	select.ariaLabel = select.title = "What widths stand for";
	select.append(...WIDTHS.map((w) => Object.assign(element("option", "width: " + w), { value: w, selected: w === widths })));
	select.onchange = () => remake(() => (widths = select.value));
	$("legend").prepend(scale, select);
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
	const title = isDiff && !m.headed ? "difference" : m.title || "yrt";
	document.title = [title, m.target].filter(Boolean).join(" \u00b7 ");
	$("title").textContent = title;
	$("target").textContent = m.target || "";
	$("facts").append(element("b", amount(whole.nowTotal[0])), ...facts().map((s) => " \u00b7 " + s));
	$("command").textContent = $("command").title = m.command || "";
	$("before").textContent = m.before ? "compared with " + m.before + (m.chance ? "; " + m.chance : "") : "";
	$("loss").textContent = (m.lossBefore && m.loss ? "after: " : "") + (m.loss || "");
	$("lossBefore").textContent = m.lossBefore ? "before: " + m.lossBefore : "";
	$("why").textContent = m.why || "";
	$("why").hidden = !m.why;
	showBrief();
	const some = (flag) => data.functions.some((v, i) => i % FIELDS === 4 && v & flag);
	const marks = [some(GUESS) && "? guessed frame", some(APPROX) && "~ approximate"].filter(Boolean);
	$("marks").textContent = marks.join(", ");
	$("marks").hidden = !marks.length;
}

/* What of the head must be seen while it is folded: how much there is, and how much of it is whole. */
function showBrief() {
	const wholeness = [data.meta.lossBefore, data.meta.loss].map((s) => /([\d.]+) % complete/.exec(s || "")?.[1]).filter(Boolean);
	const spread = data.meta.before ? null : /^about \S+ \S+ \(([^)]+)\) by \S+ calls \(([^)]+)\), in windows/.exec(data.meta.loss || "");
	const total = spread ? `about ${amount(whole.nowTotal[0])} (${spread[data.meta.unit === "bytes" ? 1 : 2]})` : amount(whole.nowTotal[0]);
	const [first, ...rest] = [total, ...(data.meta.duration ? [facts()[0]] : [])];
	$("brief").replaceChildren(Object.assign(element("span", first + rest.map((s) => " \u00b7 " + s).join("")), { className: "long" }));
	if (wholeness.length)
		$("brief").append(element("b", " " + wholeness.join(" % \u2192 ") + " %"), Object.assign(element("span", " complete"), { className: "word" }));
	$("brief").classList.toggle("bad", wholeness.some((p) => p < 95));
}

function showHead() {
	$("head").classList.toggle("open", head === "open");
	$("about").ariaExpanded = String(head === "open");
}

function showViews() {
	for (const b of document.querySelectorAll("#views button")) {
		b.ariaPressed = String(b.value === shown);
		b.hidden = b.value === "callers" && shown !== "callers";
	}
}

function refresh() {
	showViews();
	showHead();
	showLegend();
	showSifts();
	showTime();
	showCrumbs();
	showMatched();
	layout();
	if (shown === "table")
		return sortTable();
	if (shown === "callers")
		view.scrollTop = root * ROW - view.clientHeight / 2;
	else
		reveal(zoom);
	redraw();
}
