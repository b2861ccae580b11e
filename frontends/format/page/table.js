/* SPDX-License-Identifier: Apache-2.0 */
/* The table: a row a function, of all that is below the node zoomed to. Only rows that can be seen are in the page. */
const TABLE_ROW = 28, SPARE = 12;
const ROWS_BY = ["function", "line", "file", "module"], ROW_WORDS = { function: "functions", line: "lines", file: "files", module: "modules" };
let lines = [], mostSelf = 0;

/* For each function the one whose row it is in, and what that row is called. */
function rowsBy() {
	if (by === "function")
		return { of: canon, title: nameOf };
	const title = by === "line" ? place : by === "file" ? (f) => data.strings[field(f, 2)] : (f) => data.strings[field(f, 1)];
	const first = new Map(), of = new Uint32Array(nfunctions);
	for (let f = 0; f < nfunctions; f++) {
		const key = by === "line" && !field(f, 3) ? "" : title(f);
		if (!first.has(key))
			first.set(key, f);
		of[f] = first.get(key);
	}
	return { of, title: (f) => (by === "line" && !field(f, 3) ? "" : title(f)) || "[unknown " + by + "]" };
}

/* [id, heading, what it is in a row, whether great comes first] */
const COLUMNS = [
	["self", "Self", (r) => r.self, true],
	["total", "Total", (r) => r.total, true],
	...(isDiff ? [["dself", "\u0394 self", (r) => r.self - r.selfBase, true],
		["dtotal", "\u0394 total", (r) => r.total - r.totalBase, true]] : []),
	...(data.chance ? [["chance", "p", (r) => chanceOf(r.f), false]] : []),
	["name", "Name", (r) => r.name, false],
	["module", "Module", (r) => data.strings[field(r.f, 1)], false],
];

function countRows() {
	const rowOf = new Map(), { of, title } = rowsBy(), base = plain.base, { now, nowTotal, baseTotal, fn } = plain, until = new Uint32Array(nfunctions);
	for (let i = zoom; i < plain.end[zoom]; i++) {
		if (fn[i] === rootFn)
			continue;
		const f = of[fn[i]];
		let r = rowOf.get(f);
		if (!r)
			rowOf.set(f, (r = { f, name: title(f), self: 0, total: 0, selfBase: 0, totalBase: 0, hit: false }));
		r.self += now[i];
		r.selfBase += base ? base[i] : 0;
		r.hit ||= !hits || !!hits[fn[i]];
		if (i < until[f])
			continue; /* within itself: recursion */
		until[f] = plain.end[i];
		r.total += nowTotal[i];
		r.totalBase += base ? baseTotal[i] : 0;
	}
	return [...rowOf.values()].filter((r) => r.hit);
}

function sortTable() {
	const [id, , value, great] = COLUMNS.find((c) => c[0] === sorted) || COLUMNS[isDiff ? 2 : 0];
	const turn = great === !reversed ? -1 : 1, size = id[0] === "d" && !reversed ? Math.abs : (v) => v;
	const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
	lines = countRows().sort((a, b) => turn * order(size(value(a)), size(value(b))) || b.total - a.total || a.f - b.f);
	$("by").value = by;
	mostSelf = lines.reduce((most, r) => Math.max(most, r.self), 0);
	$("table").tHead.replaceChildren(element("tr", "", ...COLUMNS.map((c) => heading(c, c[0] === id))));
	$("count").textContent = lines.length.toLocaleString("en-US") + (hits ? " matching" : "") + " " + ROW_WORDS[by] +
		(zoom ? " below " + nameOf(plain.fn[zoom]) : "");
	fillTable();
}

function heading([id, text], by) {
	const th = element("th", "", button(text, () => {
		reversed = by && !reversed;
		sorted = id;
		sortTable();
		writeHash(false);
	}));
	th.className = id;
	th.scope = "col";
	th.ariaSort = !by ? "none" : (COLUMNS.find((c) => c[0] === id)[3] === !reversed) ? "descending" : "ascending";
	return th;
}

function share(part, all, id, most) {
	const td = element("td", percent(part, all)), bar = document.createElement("i");
	td.className = id;
	td.title = amount(part);
	bar.style.width = (most ? (92 * part) / most : 0) + "%";
	td.append(bar);
	return td;
}

function change(now, base, id) {
	const td = element("td", points(now, base)), step = changeOf(now, base);
	td.className = id;
	td.style.background = step ? palette.change[STEPS + step] : "";
	return td;
}

function row(r) {
	const all = plain.nowTotal[zoom], named = by === "function";
	const name = button("", () => named && show("callers", r.f), r.name + (named ? "\nClick: its callers and callees" : ""));
	const what = element("td", "", name), module = element("td", data.strings[field(r.f, 1)] || "");
	name.append(...(named ? [swatch(kindOf(r.f))] : []), r.name);
	if (named)
		name.oncontextmenu = (e) => (e.preventDefault(), openMenu(r.f, -1, e.clientX, e.clientY));
	else if (by === "line")
		name.append(element("small", " " + nameOf(r.f)));
	what.className = "name";
	module.className = "module";
	return Object.assign(element("tr", "", share(r.self, all, "self", mostSelf), share(r.total, all, "total", all),
		...(isDiff ? [change(r.self, r.selfBase, "dself"), change(r.total, r.totalBase, "dtotal")] : []),
		...(data.chance ? [Object.assign(element("td", named ? probability(chanceOf(r.f)).replace("may be chance", "\u2013") : ""), { className: "chance" })] : []), what, module), { line: r });
}

function fillTable() {
	const body = $("table").tBodies[0], top = Math.max(0, Math.floor(view.scrollTop / TABLE_ROW) - SPARE);
	const end = Math.min(lines.length, top + Math.ceil(view.clientHeight / TABLE_ROW) + 2 * SPARE);
	const space = (n) => {
		const tr = document.createElement("tr");
		tr.style.height = n * TABLE_ROW + "px";
		return tr;
	};
	const active = document.activeElement.closest("tbody tr"), at = active && lines.indexOf(active.line) - top;
	const shownRows = lines.slice(top, end).map(row);
	body.replaceChildren(space(top), ...shownRows, space(lines.length - end));
	if (active && shownRows[at])
		shownRows[at].querySelector("button").focus({ preventScroll: true });
}
