/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, of a recording that kept it: a heat map (a column a second, the milliseconds within it from bottom to top) and a
 * strip for each process or thread. What is dragged over is a part: the page shows its samples, or them against the rest.
 */
const TIME_KEYS = "Arrows choose a range, with Shift they extend it, Enter compares it with the rest, Escape undoes it.";
const HEAT_ROWS = 50, STRIPS_MOST = 64, SECOND = 1000;
const everything = whole, times = readTimes();
let dragging = null; /* { at: ms, on: canvas } */
let anchor = 0, caret = 0; /* ms: where a range chosen by keys began, and where it goes on */

function readTimes() {
	const t = data.times;
	if (!t?.after.length)
		return null;
	const when = new Float64Array(t.after.length);
	let now = 0;
	for (let i = 0; i < when.length; i++)
		when[i] = (now += t.after[i]) * t.step;
	const end = Math.max(when[when.length - 1] + t.step, data.meta.duration * SECOND || 0);
	const { unit, frequency } = data.meta, each = SECOND / frequency, value = unit === "nanoseconds" ? each * 1e6 : 1; /* a sample of wall-flame is a piece of time */
	return { when, node: t.node, count: t.count.map((n) => n * value), end, each, step: t.step, seconds: Math.ceil(end / SECOND) };
}

/* Of each node of the whole tree, the samples from a to b. */
function samplesIn(a, b) {
	const now = new Float64Array(everything.n);
	for (let i = 0; i < times.when.length; i++)
		if (times.when[i] >= a && times.when[i] < b)
			now[times.node[i]] += times.count[i];
	return now;
}

/* The tree of the part takes the place of the whole; its nodes have the same numbers. */
function applyRange() {
	whole = everything;
	data.baseScale = undefined;
	if (part) {
		const now = samplesIn(...part), sum = (a) => a.reduce((x, y) => x + y, 0);
		let rest = null;
		if (against) {
			rest = everything.now.map((v, i) => Math.max(0, v - now[i]));
			data.baseScale = sum(now) / (sum(rest) || 1) || 1;
			rest = rest.map((v) => v * data.baseScale);
		}
		whole = makeTree(everything.fn, now, rest, everything.parent);
	}
	isDiff = !!whole.base;
	sumsOfKinds = kindSums();
	$("table").classList.toggle("compares", isDiff);
}

const rangeText = () => part && part.map(Math.round).join("-");

function readRange(h) {
	const m = times && /^(\d+)-(\d+)$/.exec(h.get("time") || "");
	part = m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : null;
	against = h.has("against");
	timeShut = h.get("strips") === "shut";
	if (times)
		applyRange();
}

function setRange(next, versus = against) {
	remake(() => {
		[part, against] = [next, versus && !!next];
		widths = "both";
		applyRange();
	});
}

function paintCanvas(c, height, draw) {
	const w = c.clientWidth, ratio = devicePixelRatio || 1;
	if (!w)
		return;
	c.width = Math.round(w * ratio);
	c.height = Math.round(height * ratio);
	const g = c.getContext("2d");
	g.scale(ratio, ratio);
	draw(g, w);
}

/* What threads did, of wall-clock time, by innermost frames. Each state with its kind; none: on the CPU, all of it. */
const states = times && statesOf(everything), stateOf = (node) => STATES.indexOf(states[node]);
let stateful = null;
const hasStates = () => (stateful ??= times.node.some((node) => stateOf(node) >= 0));

/* Paper to accent. */
function heatColour(share) {
	const dark = isDark();
	return share ? rgb((dark ? 0.28 : 0.93) + (dark ? 0.42 : -0.33) * share, 0.03 + 0.15 * share, 45) : dark ? "#1c1e22" : "#f1eeea";
}

const chosenInk = () => palette.ring;

function drawHeat() {
	const cells = new Float64Array(times.seconds * HEAT_ROWS), height = $("heat").clientHeight;
	for (let i = 0; i < times.when.length; i++) {
		if (stateOf(times.node[i]) > 0)
			continue; /* only what runs: the sum of all states never changes */
		const second = Math.floor(times.when[i] / SECOND);
		cells[second * HEAT_ROWS + Math.floor(((times.when[i] - second * SECOND) / SECOND) * HEAT_ROWS)] += times.count[i];
	}
	const most = cells.reduce((a, b) => Math.max(a, b), 1);
	paintCanvas($("heat"), height, (g, w) => {
		const x = w / times.seconds, y = height / HEAT_ROWS;
		for (let k = 0; k < cells.length; k++) {
			const from = k * (SECOND / HEAT_ROWS), column = Math.floor(k / HEAT_ROWS), row = k % HEAT_ROWS;
			g.fillStyle = heatColour(Math.sqrt(cells[k] / most));
			g.globalAlpha = part && (from + SECOND / HEAT_ROWS <= part[0] || from >= part[1]) ? 0.35 : 1;
			g.fillRect(column * x, height - (row + 1) * y, Math.ceil(x - (x > 6 ? 1 : 0)), Math.ceil(y));
		}
	});
}

/* Which strip each node of the whole tree belongs to: that of its thread, or process; the busiest first. */
function findStrips() {
	const of = new Int32Array(everything.n).fill(-1), nodes = [];
	for (let i = 1; i < everything.n; i++) {
		const kind = kindOf(everything.fn[i]);
		of[i] = kind === PROCESS || kind === THREAD ? nodes.push(i) - 1 : of[everything.parent[i]];
	}
	const own = new Float64Array(nodes.length);
	everything.now.forEach((v, i) => of[i] >= 0 && (own[of[i]] += v));
	const order = nodes.map((_, k) => k).filter((k) => own[k]).sort((a, b) => own[b] - own[a]).slice(0, STRIPS_MOST);
	return { of, names: order.map((k) => nameOf(everything.fn[nodes[k]])), rank: new Map(order.map((k, r) => [k, r])), n: order.length };
}
let strips = null;

function drawStrip(c, rank) {
	paintCanvas(c, 16, (g, w) => {
		const bins = Math.max(1, Math.floor(Math.min(w / 2, hasStates() ? times.end / times.each / 2 : w))), by = [0, 1, 2].map(() => new Float64Array(bins)), all = new Float64Array(bins);
		for (let i = 0; i < times.when.length; i++)
			if (strips.rank.get(strips.of[times.node[i]]) === rank) {
				const bin = Math.min(bins - 1, Math.floor((times.when[i] / times.end) * bins));
				by[Math.max(0, stateOf(times.node[i]))][bin] += times.count[i];
				all[bin] += times.count[i];
			}
		const most = all.reduce((a, b) => Math.max(a, b), 1), x = w / bins, high = new Float64Array(bins);
		g.fillStyle = heatColour(0);
		g.fillRect(0, 0, w, 16);
		by.forEach((sums, state) => {
			g.fillStyle = hasStates() ? palette.fill[STATES[state]][2] : heatColour(0.75);
			sums.forEach((v, k) => {
				const h = v && (16 * v) / (hasStates() ? all[k] : most); /* a thread is always in one state */
				high[k] += h;
				if (h)
					g.fillRect(k * x, 16 - high[k], Math.ceil(x), h);
			});
		});
		if (part) {
			g.strokeStyle = chosenInk();
			g.lineWidth = 1.5;
			g.strokeRect((part[0] / times.end) * w + 0.75, 0.75, Math.max(2, ((part[1] - part[0]) / times.end) * w - 1.5), 14.5);
		}
	});
}

function showStrips() {
	strips ||= findStrips();
	if ($("strips").childElementCount !== strips.n)
		$("strips").replaceChildren(...strips.names.map((name) => {
			const c = Object.assign(document.createElement("canvas"), { tabIndex: 0, role: "application", ariaLabel: name + ": samples by time. " + TIME_KEYS });
			return element("div", "", c, element("span", name));
		}));
	[...$("strips").querySelectorAll("canvas")].forEach(drawStrip);
}

function showRange() {
	const seconds = (ms) => (ms / SECOND).toFixed(times.end > 100 * SECOND ? 1 : 2), p = $("range");
	if (!part)
		return p.replaceChildren(element("span", "Time: " + seconds(times.end) + " s, a column a second, its milliseconds upwards. Drag over a range."));
	const versus = button("Against the rest", () => setRange(part, !against), "Red: a greater share of this range than of the rest");
	versus.ariaPressed = String(against);
	p.replaceChildren(element("b", seconds(part[0]) + "\u2013" + seconds(part[1]) + " s"),
		element("span", amount(whole.nowTotal[0]) + ", " + percent(whole.nowTotal[0], everything.nowTotal[0])),
		versus, button("All", () => setRange(null), "All of the time (Esc)"));
}

function showTime() {
	$("time").hidden = !times || timeShut;
	$("timeKey").hidden = !times;
	if ($("time").hidden)
		return;
	showRange();
	drawHeat();
	showStrips();
}

/* The moment under a pointer: of the heat map a cell's, of a strip by its width. */
function momentAt(c, e) {
	const r = c.getBoundingClientRect(), x = Math.max(0, Math.min(1, (e.clientX - r.left) / r.width));
	if (c !== $("heat"))
		return x * times.end;
	const y = Math.max(0, Math.min(1, (r.bottom - e.clientY) / r.height));
	return Math.min(times.seconds - 1, Math.floor(x * times.seconds)) * SECOND + Math.min(HEAT_ROWS - 1, Math.floor(y * HEAT_ROWS)) * (SECOND / HEAT_ROWS);
}

function dragTo(e, done) {
	const now = momentAt(dragging.on, e), [a, b] = [Math.min(now, dragging.at), Math.max(now, dragging.at)];
	const least = dragging.on === $("heat") ? SECOND / HEAT_ROWS : Math.max(times.step, times.end / 1000);
	const next = [Math.floor(a), Math.ceil(Math.min(times.end, b + least))];
	if (done)
		return void ([anchor, caret] = [next[0], next[1] - least], setRange(next));
	const keep = part;
	part = next;
	drawHeat();
	showStrips();
	part = keep;
}

/* As a selection of text: arrows go on by a step, with Shift what they pass is chosen. */
function stepRange(step, by, extending) {
	const last = Math.max(0, times.end - step), next = part ? caret + by * step : by < 0 ? last : 0;
	caret = Math.max(0, Math.min(last, next));
	if (!part || !extending)
		anchor = caret;
	setRange([Math.floor(Math.min(anchor, caret)), Math.ceil(Math.min(times.end, Math.max(anchor, caret) + step))]);
}

/* On the heat map left and right are a second, up and down a cell; on a strip left and right are a hundredth of it all. */
function onTimeKey(e) {
	const heat = e.target === $("heat"), all = [...$("time").querySelectorAll("canvas")];
	const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 1, ArrowDown: -1 }[e.key], across = /Left|Right/.test(e.key);
	if (e.ctrlKey || e.metaKey || e.altKey || e.target.localName !== "canvas")
		return;
	if (by && (heat || across))
		stepRange(!heat ? Math.max(times.step, times.end / 100) : across ? SECOND : SECOND / HEAT_ROWS, by, e.shiftKey);
	else if (by)
		all[all.indexOf(e.target) - by]?.focus();
	else if (e.key === "Enter" && part)
		setRange(part, !against);
	else if (e.key === "Escape" && part)
		setRange(null);
	else
		return;
	e.preventDefault();
	e.stopPropagation();
}

function listenToTime() {
	if (!times)
		return;
	$("heat").ariaLabel += " " + TIME_KEYS;
	$("time").addEventListener("keydown", onTimeKey);
	$("time").addEventListener("pointerdown", (e) => {
		if (e.button || e.target.localName !== "canvas")
			return;
		dragging = { at: momentAt(e.target, e), on: e.target };
		e.target.setPointerCapture(e.pointerId);
		e.preventDefault();
	});
	$("time").addEventListener("pointermove", (e) => dragging && dragTo(e, false));
	$("time").addEventListener("pointerup", (e) => dragging && (dragTo(e, true), (dragging = null)));
	$("time").addEventListener("pointercancel", () => ((dragging = null), showTime()));
	addEventListener("resize", showTime);
}
