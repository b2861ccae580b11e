/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown: its state, the URL hash that keeps it, numbers and search. */
const whole = readTree();
let tree = whole, zoom = 0, hover = -1, chosen = -1, spot = -1, flame = true, off = new Set();
let query = "", hits = null, palette, font, width = 0, height = 0, rows = 1, from = [0, 1], movedAt = -Infinity;
let touched = false, stale = true, printing = false, pending = 0;

function readHash() {
	const h = new URLSearchParams(location.hash.slice(1));
	flame = h.get("view") !== "icicle";
	off = new Set((h.get("off") || "").split(",").map((k) => data.kinds.indexOf(k)).filter((k) => k > 0));
	tree = off.size ? foldTree(whole, off) : whole;
	const z = Number(h.get("zoom"));
	zoom = Number.isInteger(z) && z > 0 && z < whole.n ? viewOf(z) : 0;
	hover = chosen = -1;
	$("search").value = h.get("q") || "";
	setQuery($("search").value);
}

function writeHash(push) {
	const h = new URLSearchParams();
	if (zoom)
		h.set("zoom", originOf(zoom));
	if (query)
		h.set("q", query);
	if (!flame)
		h.set("view", "icicle");
	if (off.size)
		h.set("off", [...off].map((k) => data.kinds[k]).join());
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

function compile(text) {
	const flags = /[A-Z]/.test(text) ? "u" : "iu";
	try {
		return new RegExp(text, flags);
	} catch {
		return null;
	}
}

function setQuery(text) {
	const re = text ? compile(text) : null;
	query = text;
	hits = null;
	$("search").classList.toggle("literal", !!text && !re);
	if (text) {
		hits = new Uint8Array(nfunctions);
		for (let f = 0; f < nfunctions; f++)
			hits[f] = re ? re.test(nameOf(f)) : nameOf(f).includes(text);
	}
	showMatched();
}

/* What lies under matching frames below node i, each sample once. */
function matchedBelow(i) {
	let sum = 0;
	for (const end = tree.end[i]; i < end; ) {
		if (hits[tree.fn[i]]) {
			sum += tree.total[i];
			i = tree.end[i];
		} else {
			i++;
		}
	}
	return sum;
}

function showMatched() {
	if (!hits)
		return void ($("matched").textContent = "");
	const all = matchedBelow(0), here = zoom ? matchedBelow(zoom) : 0;
	$("matched").textContent = percent(all, tree.total[0]) + " matched" +
		(zoom ? ", " + percent(here, tree.total[zoom]) + " of this" : "");
	$("matched").title = amount(all);
}
