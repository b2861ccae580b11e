/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines (--source), and how many samples are in each: with --lines in the line being executed, else in the function's first. */
function blocksOf(f) {
	const file = data.strings[field(f, 2)], line = field(f, 3);
	if (!data.source || !Object.hasOwn(data.source, file))
		return [];
	return data.source[file].filter(([first, text]) => line >= first && line < first + text.split("\n").length);
}
const hasSource = (f) => field(f, 3) > 0 && kindOf(f) !== PROCESS && blocksOf(f).length > 0;

/* {line: [self, total]} of a file, of all that is drawn. */
function countLines(file) {
	const counts = new Map(), until = new Map();
	for (let i = 1; i < plain.n; i++) {
		const f = plain.fn[i], line = field(f, 3);
		if (field(f, 2) !== file || !line)
			continue;
		const c = counts.get(line) || [0, 0];
		c[0] += plain.now[i];
		if (i >= (until.get(line) || 0)) {
			c[1] += plain.nowTotal[i];
			until.set(line, plain.end[i]);
		}
		counts.set(line, c);
	}
	return counts;
}

function openSource(f) {
	const [[first, text]] = blocksOf(f), counts = countLines(field(f, 2)), rows = document.createElement("tbody");
	text.split("\n").forEach((s, i) => {
		const [self, total] = counts.get(first + i) || [0, 0], cell = (n) => element("td", n ? percent(n, plain.nowTotal[0]) : "");
		const row = element("tr", "", cell(self), cell(total), element("th", first + i), element("td", s));
		row.ariaCurrent = String(first + i === field(f, 3));
		rows.append(row);
	});
	const head = element("header", "", element("b", data.strings[field(f, 2)]), button("Close", closeSource, "Esc"));
	$("source").replaceChildren(head, element("table", "", element("thead", "", element("tr", "", ...["Self", "Total", "Line", ""].map((s) => element("th", s)))), rows));
	$("source").hidden = false;
	$("source").querySelector("[aria-current=true]").scrollIntoView({ block: "center" });
	tip.hidden = true;
}

function closeSource() {
	$("source").hidden = true;
	focusGraph();
}
