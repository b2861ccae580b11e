/* SPDX-License-Identifier: Apache-2.0 */
/* The table: a row a function, of all that is below the node zoomed to. Only rows that can be seen are in the page. */
const TABLE_ROW = 28, SPARE = 12;
let lines = [], mostSelf = 0;

/* [id, heading, what it is in a row, whether great comes first] */
const COLUMNS = [
	["self", "Self", (r) => r.self, true],
	["total", "Total", (r) => r.total, true],
	...(isDiff ? [["dself", "\u0394 self", (r) => r.self - r.selfBase, true],
		["dtotal", "\u0394 total", (r) => r.total - r.totalBase, true]] : []),
	["name", "Function", (r) => nameOf(r.f), false],
	["module", "Module", (r) => data.strings[field(r.f, 1)], false],
];

function countRows() {
	const rowOf = new Map(), base = plain.base, { now, nowTotal, baseTotal, fn } = plain, until = new Uint32Array(nfunctions);
	for (let i = zoom; i < plain.end[zoom]; i++) {
		const f = canon[fn[i]];
		let r = rowOf.get(f);
		if (!r)
			rowOf.set(f, (r = { f, self: 0, total: 0, selfBase: 0, totalBase: 0, hit: false }));
		r.self += now[i];
		r.selfBase += base ? base[i] : 0;
		r.hit ||= !hits || !!hits[fn[i]];
		if (i < until[f])
			continue; /* within itself: recursion */
		until[f] = plain.end[i];
		r.total += nowTotal[i];
		r.totalBase += base ? baseTotal[i] : 0;
	}
	return [...rowOf.values()].filter((r) => r.hit && r.f !== rootFn);
}

function sortTable() {
	const [id, , value, great] = COLUMNS.find((c) => c[0] === sorted) || COLUMNS[isDiff ? 2 : 0];
	const turn = great === !reversed ? -1 : 1, size = id[0] === "d" && !reversed ? Math.abs : (v) => v;
	const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
	lines = countRows().sort((a, b) => turn * order(size(value(a)), size(value(b))) || b.total - a.total || a.f - b.f);
	mostSelf = lines.reduce((most, r) => Math.max(most, r.self), 0);
	$("table").tHead.replaceChildren(element("tr", "", ...COLUMNS.map((c) => heading(c, c[0] === id))));
	$("count").textContent = lines.length.toLocaleString("en-US") + (hits ? " matching" : "") + " functions" +
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
	const all = plain.nowTotal[zoom], title = nameOf(r.f) + "\nClick: its callers and callees";
	const name = button("", () => show("callers", r.f), title);
	const what = element("td", "", name), module = element("td", data.strings[field(r.f, 1)] || "");
	name.append(swatch(kindOf(r.f)), nameOf(r.f));
	what.className = "name";
	module.className = "module";
	return Object.assign(element("tr", "", share(r.self, all, "self", mostSelf), share(r.total, all, "total", all),
		...(isDiff ? [change(r.self, r.selfBase, "dself"), change(r.total, r.totalBase, "dtotal")] : []), what, module), { line: r });
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
