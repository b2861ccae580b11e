/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the page and the trees made of it. */
"use strict";
const ROW = 19, GAP = 1, THIN = 0.5, THICK = 8, PAD = 5, MIN_LABEL = 3, LONG = 200, MIN_ROWS = 6, MOVE_MS = 160, FONT = "12px ";
const PRINT_WIDTH = 1600, PRINT_HEIGHT = 2800, DENSE = 2;
const GUESS = 1, APPROX = 2, INLINED = 4;
/* Lightness and chroma are the theme's; here chroma factor and hue. */
const HUES = {
	root: [0.1, 80], kernel: [1, 58], native: [0.8, 245], "c++": [0.9, 285], rust: [1.1, 30], vm: [0.35, 310],
	script: [1.15, 148], baseline: [0.95, 168], jit: [1.05, 190], cfunc: [1.1, 98], stub: [0.9, 225],
	runtime: [0.6, 325], class: [0.7, 350], memory: [0.3, 230], used: [1, 30], free: [0.8, 150], label: [0.2, 200],
	container: [0.5, 210], process: [0.3, 250], thread: [0.2, 250], running: [1.5, 25], runnable: [1.4, 95],
	waiting: [0.12, 265], unknown: [0.25, 20],
};
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const canvas = $("graph"), ctx = canvas.getContext("2d"), view = $("view"), stage = $("stage"), tip = $("tip");
const motion = matchMedia("(prefers-reduced-motion: reduce)"), darkness = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 640px)");

const FIELDS = 6, PROCESS = data.kinds.indexOf("process"), THREAD = data.kinds.indexOf("thread"), SCRIPT = data.kinds.indexOf("script");
const STATES = ["running", "runnable", "waiting"].map((k) => data.kinds.indexOf(k));
const field = (f, k) => data.functions[f * FIELDS + k];
const nameOf = (f) => data.strings[field(f, 0)];
const kindOf = (f) => field(f, 5);
/* What people call this kind of code of a function's runtime; other kinds have no other name. */
const wordOf = (f, kind) => data.words[data.strings[field(f, 1)]]?.[kind - SCRIPT] || data.kinds[kind];
const marksOf = (f) => (field(f, 4) & GUESS ? "? " : "") + (field(f, 4) & APPROX ? "~ " : "");

function place(f) {
	const file = data.strings[field(f, 2)], line = field(f, 3);
	return file && line ? file + ":" + line : file;
}

/* What threads and processes share that are drawn as one: of threads the name but for its numbers, of processes the program. */
const groupName = (f) => kindOf(f) === PROCESS ? data.strings[field(f, 1)] : nameOf(f).replace(/ \(tid \d+\)$/, "").replace(/\d+/g, "#");

/* For each function what stands for it when such threads and processes are drawn as one. */
function groupFunctions(kind, word, of) {
	const groups = {}, n = of.length;
	let most = 1;
	for (let f = 0; f < n; f++)
		if (kindOf(f) === kind)
			(groups[[groupName(f), field(f, 2)]] ||= []).push(f); /* in one container */
	for (const same of Object.values(groups)) {
		if (same.length < 2)
			continue;
		const text = data.strings.push(`${groupName(same[0])} (${same.length} ${word})`) - 1;
		const f = data.functions.push(text, field(same[0], 1), field(same[0], 2), 0, 0, kind) / FIELDS - 1;
		same.forEach((m) => (of[m] = f));
		of.push(f);
		most = Math.max(most, same.length);
	}
	return most;
}
const MANY = 8, groupOf = Array.from({ length: data.functions.length / FIELDS }, (_, f) => f);
const crowded = groupFunctions(PROCESS, "processes", groupOf) > MANY; /* drawn as one if nobody wants each */
groupFunctions(THREAD, "threads", groupOf);
const nfunctions = groupOf.length;

/* A function may be there more than once, with other lines or as a trace of a JIT: the first stands for all. They are sorted. */
const canon = new Uint32Array(nfunctions);
for (let f = 1; f < nfunctions; f++)
	canon[f] = field(f, 0) === field(f - 1, 0) && field(f, 1) === field(f - 1, 1) ? canon[f - 1] : f;

/* Of what is there both as certain and as approximate, which differ in that alone, the certain one. They are sorted. */
const sure = Uint32Array.from(groupOf, (_, f) => f);
for (let f = 1; f < nfunctions; f++)
	if ([0, 1, 2, 5].every((k) => field(f, k) === field(f - 1, k)) && field(f, 4) - field(f - 1, 4) === APPROX)
		sure[f] = f - 1;

/* values and what is below them: of all nodes in preorder. */
function sums(values, parent) {
	const total = Float64Array.from(values);
	for (let i = total.length - 1; i > 0; i--)
		total[parent[i]] += total[i];
	return total;
}

/*
 * A tree lies in preorder: the nodes below i are i + 1 .. end[i] - 1. Functions are numbered in the order of siblings.
 * now: samples that end in each node; base: those of the profile compared with, scaled, or null. self and total are what is
 * drawn. origin says which node of the whole tree stands for a node, view the reverse.
 */
function makeTree(fn, now, base, parent) {
	const n = fn.length, t = {
		n, fn, now, base, parent, end: new Uint32Array(n), depth: new Int16Array(n), origin: null, view: null,
		nowTotal: sums(now, parent), baseTotal: base && sums(base, parent),
	};
	for (let i = n - 1; i >= 0; i--) {
		t.end[i] = Math.max(t.end[i], i + 1);
		if (i)
			t.end[parent[i]] = Math.max(t.end[parent[i]], t.end[i]);
	}
	for (let i = 1; i < n; i++)
		t.depth[i] = t.depth[parent[i]] + 1;
	return weigh(t);
}

/* A difference is drawn as wide as both sides together, so that what has vanished can be seen. */
function weigh(t) {
	const next = new Float64Array(t.n), mean = (a, b) => a.map((v, i) => (v + b[i]) / 2);
	const pick = (a, b) => (!b || widths === "after" ? a : widths === "before" ? b : mean(a, b));
	t.self = pick(t.now, t.base);
	t.total = pick(t.nowTotal, t.baseTotal);
	t.start = new Float64Array(t.n);
	for (let i = 1; i < t.n; i++) {
		const p = t.parent[i];
		t.start[i] = next[i] = next[p];
		next[p] += t.total[i];
	}
	return t;
}

/* data.up[i]: by how many levels node i lies above a child of the node before it. */
function readTree() {
	const n = data.fn.length, parent = new Uint32Array(n), scale = data.baseScale ?? 1;
	for (let i = 1; i < n; i++) {
		let p = i - 1;
		for (let k = data.up[i]; k > 0; k--)
			p = parent[p];
		parent[i] = p;
	}
	return Object.assign(makeTree(Uint32Array.from(data.fn), Float64Array.from(data.self),
		data.base ? Float64Array.from(data.base, (v) => v * scale) : null, parent), { more: data.more });
}

/* Of each node the kind of state that it is or lies in: inside a wait is who ended it. 0: none. */
function statesOf(t) {
	const state = new Uint8Array(t.n);
	for (let i = 1; i < t.n; i++)
		state[i] = state[t.parent[i]] || (STATES.includes(kindOf(t.fn[i])) ? kindOf(t.fn[i]) : 0);
	return state;
}

/* A tree in the making: nodes with the same parent and function are one. */
function merger(f) {
	return { fn: [f], now: [0], base: [0], parent: [0], origin: [0], seen: new Map() };
}

function childOf(m, p, f, origin) {
	const key = p * nfunctions + sure[f];
	let id = m.seen.get(key);
	if (id === undefined) {
		id = m.fn.push(f) - 1;
		m.parent.push(p), m.now.push(0), m.base.push(0), m.origin.push(origin), m.seen.set(key, id);
	} else if (f === sure[f]) {
		m.fn[id] = f;
	}
	return id;
}

function addTo(m, id, now, base) {
	m.now[id] += now;
	m.base[id] += base;
}

/* The nodes of a tree given by parent and fn, in preorder. */
function preorder(fn, parent) {
	const n = fn.length, first = new Uint32Array(n + 1), ids = new Uint32Array(n - 1), order = [], stack = [0];
	for (let i = 1; i < n; i++)
		ids[i - 1] = i;
	ids.sort((a, b) => parent[a] - parent[b] || fn[a] - fn[b]);
	for (let i = 1; i < n; i++)
		first[parent[i] + 1]++;
	for (let i = 0; i < n; i++)
		first[i + 1] += first[i];
	while (stack.length) {
		const i = stack.pop();
		order.push(i);
		for (let k = first[i + 1]; k > first[i]; k--)
			stack.push(ids[k - 1]);
	}
	return order;
}

/* of: for each node of the whole tree, which node of the merger it went into. */
function finish(m, of) {
	const order = preorder(m.fn, m.parent), at = new Uint32Array(order.length), pick = (type, a) => type.from(order, (id) => a[id]);
	order.forEach((id, i) => (at[id] = i));
	m.at = at;
	const t = makeTree(pick(Uint32Array, m.fn), pick(Float64Array, m.now), whole.base && pick(Float64Array, m.base),
		Uint32Array.from(order, (id) => at[m.parent[id]]));
	t.origin = pick(Uint32Array, m.origin);
	t.view = of && of.map((id) => at[id]);
	return t;
}

/*
 * Recursion that is folded: of frames that repeat those right above them in full, as f;f or a;b;a;b, the last goes into
 * the node that it repeats. Returns that node for function f under node p, or -1.
 */
const CYCLE_MOST = 8;

function repeated(fn, parent, p, f) {
	for (let k = 1, end = p; k <= CYCLE_MOST && end; k++, end = parent[end]) {
		let a = p, b = parent[end], same = canon[fn[end]] === canon[f] ? 1 : 0;
		for (; same && same < k && b && canon[fn[a]] === canon[fn[b]]; same++)
			[a, b] = [parent[a], parent[b]];
		if (same === k)
			return end;
	}
	return -1;
}

let recursive = null;
const hasRecursion = () => (recursive ??= everything.fn.some((f, i) => i && repeated(everything.fn, everything.parent, everything.parent[i], f) >= 0));

/* The whole tree without the kinds that are off, the functions hidden and the stacks left out: their samples go to their callers, and what becomes equal is merged. */
function foldTree() {
	const m = merger(whole.fn[0]), of = new Uint32Array(whole.n), more = [], some = filters.length ? filterNodes() : null;
	for (let i = 0; i < whole.n; i++) {
		const f = grouped ? groupOf[whole.fn[i]] : whole.fn[i], p = of[whole.parent[i]];
		const there = !part || whole.nowTotal[i] || whole.baseTotal?.[i];
		const drawn = i && there && !off.has(kindOf(f)) && (!some || (some.live[i] && !some.hidden(whole.fn[i])));
		const again = drawn && once ? repeated(m.fn, m.parent, p, f) : -1;
		of[i] = !drawn ? p : again >= 0 ? again : childOf(m, p, f, i);
		if (!some || some.stays[i])
			addTo(m, of[i], whole.now[i], whole.base ? whole.base[i] : 0);
		if (drawn && whole.more)
			more[of[i]] = (more[of[i]] || 0) + whole.more[i];
	}
	const t = finish(m, of);
	if (whole.more)
		more.forEach((n, id) => ((t.more ||= [])[m.at[id]] = n));
	return t;
}

/* Calls fn for the outermost nodes of a function below node i: each of their samples is there once. */
function outermost(f, fn, i = 0) {
	for (const end = plain.end[i]; i < end; i = canon[plain.fn[i]] === f ? (fn(i), plain.end[i]) : i + 1);
}

function callees(f) {
	const m = merger(f), of = new Uint32Array(plain.n);
	outermost(f, (i) => {
		for (let k = i; k < plain.end[i]; k++) {
			of[k] = k > i ? childOf(m, of[plain.parent[k]], plain.fn[k], k) : 0;
			addTo(m, of[k], plain.now[k], plain.base ? plain.base[k] : 0);
		}
	});
	return finish(m);
}

function callers(f) {
	const m = merger(f);
	outermost(f, (i) => {
		let id = 0;
		for (let p = i && plain.parent[i]; p; p = plain.parent[p])
			id = childOf(m, id, plain.fn[p], p);
		addTo(m, id, plain.nowTotal[i], plain.base ? plain.baseTotal[i] : 0);
	});
	return finish(m);
}

/* A function with its callees at depths above 0 and, behind them in the same tree, its callers at depths below 0. */
function sandwich(f) {
	const down = callees(f), up = callers(f), t = { n: down.n + up.n - 1, sandwich: true };
	for (const k of ["fn", "now", "base", "self", "total", "nowTotal", "baseTotal", "start", "depth", "parent", "end"]) {
		if (!down[k])
			continue;
		const shift = k === "parent" || k === "end" ? down.n - 1 : 0, join = (t[k] = new down[k].constructor(t.n));
		join.set(down[k]);
		for (let i = 1; i < up.n; i++)
			join[down.n - 1 + i] = k === "depth" ? -up[k][i] : up[k][i] && up[k][i] + shift;
	}
	t.end[0] = t.n;
	return t;
}

/* Bottom-up: from the innermost frames to their callers. */
function invert() {
	const m = merger(plain.fn[0]);
	for (let i = 0; i < plain.n; i++) {
		let id = 0;
		if (!plain.now[i] && !plain.base?.[i])
			continue;
		for (let p = i; p; p = plain.parent[p])
			id = childOf(m, id, plain.fn[p], p);
		addTo(m, id, plain.now[i], plain.base ? plain.base[i] : 0);
	}
	return Object.assign(finish(m), { inverted: true });
}

const originOf = (i) => (plain.origin ? plain.origin[i] : i);
const viewOf = (i) => (plain.view ? plain.view[i] : i);
