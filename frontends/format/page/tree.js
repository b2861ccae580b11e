/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the page and the trees made of it. */
"use strict";
const ROW = 19, GAP = 1, THIN = 0.5, PAD = 5, MIN_LABEL = 3, MIN_ROWS = 6, MOVE_MS = 160, FONT = "12px ";
const PRINT_WIDTH = 1600, PRINT_HEIGHT = 2800, PRINT_DENSITY = 2;
const GUESS = 1, APPROX = 2, INLINED = 4;
/* Lightness and chroma are the theme's; here chroma factor and hue. */
const HUES = {
	root: [0.1, 80], kernel: [1, 58], native: [0.8, 245], "c++": [0.9, 285], rust: [1.1, 30], vm: [0.35, 310],
	script: [1.15, 148], jit: [1.05, 190], cfunc: [1.1, 98], thread: [0.2, 250], unknown: [0.25, 20],
};
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const canvas = $("graph"), ctx = canvas.getContext("2d"), view = $("view"), stage = $("stage"), tip = $("tip");
const motion = matchMedia("(prefers-reduced-motion: reduce)"), darkness = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 640px)");

const FIELDS = 6;
const nfunctions = data.functions.length / FIELDS;
const field = (f, k) => data.functions[f * FIELDS + k];
const nameOf = (f) => data.strings[field(f, 0)];
const kindOf = (f) => field(f, 5);
const marksOf = (f) => (field(f, 4) & GUESS ? "? " : "") + (field(f, 4) & APPROX ? "~ " : "");

function place(f) {
	const file = data.strings[field(f, 2)], line = field(f, 3);
	return file && line ? file + ":" + line : file;
}

/*
 * A tree lies in preorder: the nodes below i are i + 1 .. end[i] - 1. Functions are numbered in the order of siblings.
 * origin tells which node of the whole tree stands for a node, view the reverse.
 */
function makeTree(fn, self, parent) {
	const n = fn.length, t = {
		n, fn, self, parent, total: Float64Array.from(self), start: new Float64Array(n), end: new Uint32Array(n),
		depth: new Uint16Array(n), origin: null, view: null,
	};
	const next = new Float64Array(n);
	for (let i = n - 1; i >= 0; i--) {
		t.end[i] = Math.max(t.end[i], i + 1);
		if (i) {
			t.total[parent[i]] += t.total[i];
			t.end[parent[i]] = Math.max(t.end[parent[i]], t.end[i]);
		}
	}
	for (let i = 1; i < n; i++) {
		const p = parent[i];
		t.start[i] = next[i] = next[p];
		next[p] += t.total[i];
		t.depth[i] = t.depth[p] + 1;
	}
	return t;
}

/* data.up[i]: by how many levels node i lies above a child of the node before it. */
function readTree() {
	const n = data.fn.length, parent = new Uint32Array(n);
	for (let i = 1; i < n; i++) {
		let p = i - 1;
		for (let k = data.up[i]; k > 0; k--)
			p = parent[p];
		parent[i] = p;
	}
	return makeTree(Uint32Array.from(data.fn), Float64Array.from(data.self), parent);
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

/* The whole tree without the kinds that are off: their samples go to their callers, and what becomes equal is merged. */
function foldTree(whole, off) {
	const fn = [0], self = [0], parent = [0], origin = [0], of = new Uint32Array(whole.n), seen = new Map();
	for (let i = 0; i < whole.n; i++) {
		const f = whole.fn[i], p = i ? of[whole.parent[i]] : 0, key = p * nfunctions + f;
		let id = i && !off.has(kindOf(f)) ? seen.get(key) : p;
		if (id === undefined) {
			id = fn.push(f) - 1;
			parent.push(p), self.push(0), origin.push(i), seen.set(key, id);
		}
		self[id] += whole.self[i];
		of[i] = id;
	}
	fn[0] = whole.fn[0];
	return renumber(fn, self, parent, origin, of);
}

function renumber(fn, self, parent, origin, of) {
	const order = preorder(fn, parent), place = new Uint32Array(order.length);
	order.forEach((id, i) => (place[id] = i));
	const t = makeTree(Uint32Array.from(order, (id) => fn[id]), Float64Array.from(order, (id) => self[id]),
		Uint32Array.from(order, (id) => place[parent[id]]));
	t.origin = Uint32Array.from(order, (id) => origin[id]);
	t.view = of.map((id) => place[id]);
	return t;
}

const originOf = (i) => (tree.origin ? tree.origin[i] : i);
const viewOf = (i) => (tree.view ? tree.view[i] : i);
