/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the page as a file: folded stacks, and the picture with its banner as PNG or SVG. */
const PICTURE_WIDTH = 1400, MARGIN = 16, LINE = 20, CANVAS_MAX = 16000;

function save(blob, extension) {
	const a = document.createElement("a"), name = [data.meta.title || "yrt", data.meta.target].filter(Boolean).join("-");
	a.href = URL.createObjectURL(blob);
	a.download = name.replace(/[^\w.]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(0, 80) + "." + extension;
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 60000);
}

/* As the format: ';' and what breaks lines is replaced. Of a difference two counts, before and after. */
function folded() {
	const path = [], out = [], before = (i) => Math.round(plain.base[i] / (data.baseScale || 1)) + " ";
	const counts = (i) => (isDiff ? before(i) : "") + plain.now[i];
	const clean = (s) => s.replace(/;/g, ":").replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, " ");
	const top = tree === plain ? zoom : 0;
	for (let i = 0; i < plain.n; i++) {
		const inside = i >= top && i < plain.end[top];
		path.length = Math.max(0, plain.depth[i] - 1);
		if (i)
			path.push(marksOf(plain.fn[i]) + clean(nameOf(plain.fn[i])));
		if (inside && (plain.now[i] || (isDiff && plain.base[i])))
			out.push((path.join(";") || "[no stack]") + " " + counts(i) + "\n");
	}
	return out.join("");
}

/* Text of XML 1.0, which has no place for most control characters. */
const escaped = (s) => s.replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";")
	.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

function onSvg(out) {
	return {
		rect(x, y, w, h, colour, line) {
			const more = (w > THICK ? ' rx="2.5"' : "") + (line ? ` stroke="${line}"` : "");
			out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${colour}"${more}/>`);
		},
		text(s, x, y, colour, bold) {
			out.push(`<text x="${x}" y="${y + 4}" fill="${colour}"${bold ? ' font-weight="bold"' : ""}>${escaped(s)}</text>`);
		},
	};
}

/* What the head of the page says, as lines. */
function headLines() {
	const m = data.meta, found = $("matched").textContent;
	return [[m.title || "yrt", m.target].filter(Boolean).join(" \u00b7 "), [amount(whole.nowTotal[0]), ...facts()].join(" \u00b7 "),
		m.command && "$ " + m.command, m.before && "compared with " + m.before, $("lossBefore").textContent, $("loss").textContent,
		...filters.map(([what, text]) => FILTER_WORDS[what] + " " + text.replace(/^=/, "")), query && "search " + query + ": " + found,
		zoom && "zoomed to " + nameOf(tree.fn[zoom]), tree.sandwich && "callers and callees of " + nameOf(focused),
		tree.inverted && "inverted: from the innermost frames to their callers"].filter(Boolean);
}

function drawHead(p, head) {
	let x = MARGIN;
	head.forEach((s, i) => p.text(cut(s, PICTURE_WIDTH - 2 * MARGIN), MARGIN, MARGIN + i * LINE + LINE / 2,
		i ? palette.soft : palette.ink, !i));
	sumsOfKinds.frames.forEach((frames, kind) => {
		const y = MARGIN + head.length * LINE, text = data.labels[kind] + " " + percent(sumsOfKinds.self[kind], whole.nowTotal[0]);
		if (!frames || off.has(kind) || isDiff)
			return;
		p.rect(x, y + 4, 12, 12, palette.fill[kind][2]);
		p.text(text, x + 18, y + LINE / 2, palette.soft);
		x += 36 + [...text].reduce((w, ch) => w + glyphWidth(ch), 0);
	});
}

/* Draws the whole picture with the painter that make(width, height) gives. */
function picture(make) {
	const kept = [width, rows, root], head = headLines();
	picturing = true;
	width = PICTURE_WIDTH - 2 * MARGIN;
	measure();
	const top = MARGIN + (head.length + 1) * LINE + 8, high = top + rows * ROW + MARGIN, p = make(PICTURE_WIDTH, high);
	hover = chosen = -1;
	p.rect(0, 0, PICTURE_WIDTH, high, palette.paper);
	drawHead(p, head);
	drawFrames({
		rect: (x, y, ...rest) => p.rect(x + MARGIN, y + top, ...rest),
		text: (s, x, y, ...rest) => p.text(s, x + MARGIN, y + top, ...rest),
	}, span(), 0, rows * ROW);
	[width, rows, root] = kept;
	picturing = false;
	redraw();
}

function svg() {
	const out = [];
	let size;
	picture((w, h) => ((size = [w, h]), onSvg(out)));
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${size[0]}" height="${size[1]}" viewBox="0 0 ${size[0]} ${size[1]}" ` +
		`font-family="${escaped(font.slice(FONT.length))}" font-size="12">\n` + out.join("\n") + "\n</svg>\n";
}

function png() {
	const c = document.createElement("canvas");
	picture((w, h) => {
		const dense = Math.min(DENSE, CANVAS_MAX / h), g = c.getContext("2d");
		[c.width, c.height] = [w * dense, h * dense];
		g.scale(dense, dense);
		return onCanvas(g);
	});
	return new Promise((done) => c.toBlob(done, "image/png"));
}

const EXPORTS = {
	folded: () => new Blob([folded()], { type: "text/plain" }),
	svg: () => new Blob([svg()], { type: "image/svg+xml" }),
	png,
};
