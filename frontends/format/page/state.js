/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown: its state, the URL hash that keeps it, numbers and search. */
const VIEWS = ["flame", "icicle", "inverted", "table", "callers"], WIDTHS = ["both", "before", "after"];
let widths = "both", grouped = crowded, off = new Set(), shown = "flame", came = "flame";
let whole = readTree(), plain = whole, tree = whole, zoom = 0, hover = -1, chosen = -1, spot = -1, look = "";
const rootFn = canon[whole.fn[0]];
let focused = rootFn, query = "", hits = null, palette, font, width = 0, height = 0, rows = 1, root = 0;
let from = [0, 1], movedAt = -Infinity;
let touched = false, stale = true, printing = false, pending = 0, sorted = "", reversed = false, kept = 0; /* kept: node zoomed to before callers */
let trunk = 0, trunkEnd = 0, trunkOpen = false, picturing = false, filters = [], head = "", by = "function", once = false; /* once: recursion is folded */
let isDiff = !!whole.base;
let part = null, against = false, timeShut = false; /* of time.js; part: of the time, [a, b] in ms */
const graphView = () => (shown === "table" ? came : shown);

/* Views with a tree of their own, whose zoom is not kept. */
const apart = (name = shown) => name === "callers" || name === "inverted";
const ownTree = { callers: () => sandwich(focused), inverted: () => invert() };

/* plain is the tree of flame, icicle and table; tree is what is drawn. */
function rebuild() {
	weigh(whole);
	plain = off.size || grouped || once || filters.length || part ? foldTree() : whole;
	trunk = trunkOf(plain);
	lens = null;
	tree = apart() ? ownTree[shown]() : plain;
	hover = chosen = -1;
}

function readHash() {
	const h = new URLSearchParams(location.hash.slice(1)), one = (name, known) => known[Math.max(0, known.indexOf(h.get(name)))];
	shown = one("view", VIEWS);
	came = shown === "callers" ? one("from", VIEWS.slice(0, 4)) : shown === "table" ? "flame" : shown;
	widths = one("widths", WIDTHS);
	look = one("theme", ["", "light", "dark"]);
	grouped = h.has("threads") ? h.get("threads") === "grouped" : crowded;
	trunkOpen = h.get("rows") === "all";
	once = h.get("recursion") === "folded";
	head = one("head", ["", "open"]);
	by = one("by", ROWS_BY);
	readRange(h);
	filters = [...h].filter(([what, text]) => FILTERS.includes(what) && text).slice(0, FILTERS_MOST);
	[sorted, reversed] = [h.get("sort") || "", h.has("reverse")];
	off = new Set((h.get("off") || "").split(",").map((k) => data.kinds.indexOf(k)).filter((k) => k > 0));
	const f = Number(h.get("fn") ?? NaN), z = Number(h.get("zoom"));
	focused = Number.isInteger(f) && f >= 0 && f < nfunctions ? canon[f] : rootFn;
	rebuild();
	kept = Number.isInteger(z) && z > 0 && z < whole.n ? z : 0;
	zoom = apart() ? 0 : viewOf(kept);
	$("search").value = h.get("q") || "";
	setQuery($("search").value);
}

function writeHash(push) {
	const h = new URLSearchParams(), set = (name, value) => value && h.set(name, value);
	set("zoom", apart() ? kept : zoom && originOf(zoom));
	set("q", query);
	set("view", shown !== "flame" && shown);
	if (shown === "callers")
		h.set("fn", focused), set("from", came !== "flame" && came);
	if (shown === "table")
		set("sort", sorted), set("reverse", reversed && 1), set("by", by !== "function" && by);
	set("off", [...off].map((k) => data.kinds[k]).join());
	set("threads", grouped !== crowded && (grouped ? "grouped" : "each"));
	set("rows", trunkOpen && "all");
	set("recursion", once && "folded");
	set("head", head);
	set("time", rangeText());
	set("against", against && part && 1);
	set("strips", timeShut && "shut");
	filters.forEach(([what, text]) => h.append(what, text));
	set("widths", widths !== "both" && widths);
	set("theme", look);
	const hash = String(h) && "#" + h;
	if (hash !== location.hash)
		history[push ? "pushState" : "replaceState"](null, "", location.href.split("#")[0] + hash);
}

function scaled(v, base, units) {
	let k = 0;
	while (v >= base && k < units.length - 1)
		v /= base, k++;
	return (k && v < 100 ? v.toFixed(v < 10 ? 2 : 1) : Math.round(v)) + " " + units[k];
}

function amount(v) {
	const unit = data.meta.unit || "samples";
	if (unit === "nanoseconds")
		return scaled(v, 1000, ["ns", "\u00b5s", "ms", "s"]);
	if (unit === "bytes")
		return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
	return Math.round(v).toLocaleString("en-US") + " " + (v === 1 ? unit.replace(/s$/, "") : unit);
}

function percent(part, all) {
	const p = all ? (part / all) * 100 : 0;
	return p > 0 && p < 0.01 ? "<0.01%" : p.toFixed(p >= 9.995 ? 1 : 2) + "%";
}

/* The change of a share, in points of a percent. */
function points(now, base) {
	const d = (whole.nowTotal[0] ? now / whole.nowTotal[0] : 0) - (whole.baseTotal[0] ? base / whole.baseTotal[0] : 0);
	return (d < 0 ? "\u2212" : "+") + Math.abs(d * 100).toFixed(2);
}

function compile(text) {
	const flags = /[A-Z]/.test(text) ? "u" : "iu";
	try {
		return new RegExp(text, flags);
	} catch {
		return null;
	}
}

/* "p<0.05", where a difference was tested: what changed beyond chance. 0: text is something else. */
const levelOf = (text) => (data.chance && Number(/^p<(0?\.\d+)$/.exec(text)?.[1])) || 0;
const chancesOf = (f) => data.chance?.[f] || [1, 1];
const chanceOf = (f) => Math.min(...chancesOf(f).map((p) => p || 1));

function setQuery(text) {
	const level = levelOf(text), re = text && !level ? compile(text) : null;
	query = text;
	hits = null;
	$("search").classList.toggle("literal", !!text && !re && !level);
	if (text) {
		hits = new Uint8Array(nfunctions);
		for (let f = 0; f < nfunctions; f++)
			hits[f] = level ? chanceOf(f) < level : re ? re.test(nameOf(f)) : nameOf(f).includes(text);
	}
	showMatched();
}

/* What lies under matching frames below node i, each sample once. */
function matchedBelow(i, total) {
	let sum = 0;
	for (const end = plain.end[i]; i < end; ) {
		if (hits[plain.fn[i]]) {
			sum += total[i];
			i = plain.end[i];
		} else {
			i++;
		}
	}
	return sum;
}

function showMatched() {
	const { nowTotal, baseTotal } = plain, out = $("matched"), z = tree === plain ? zoom : 0;
	$("found").hidden = !hits;
	if (!hits)
		return void (out.textContent = "");
	const all = matchedBelow(0, nowTotal), here = z ? matchedBelow(z, nowTotal) : 0;
	out.textContent = percent(all, nowTotal[0]) + " matched" + (z ? ", " + percent(here, nowTotal[z]) + " of this" : "") +
		(isDiff ? ", before " + percent(matchedBelow(0, baseTotal), baseTotal[0]) : "");
	out.title = amount(all);
}
