/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trunk: the rows at the root that most stacks share, one frame above the other. They are drawn as one row, the
 * handle, so that what differs is in view; a click on it opens them. Tables, searches and files heed them as ever.
 */
const SHARED = 0.9, NEARLY_ALL = 0.98, TRUNK_LEAST = 3, TRUNK_LONG = 12,
	CODE = ["script", "baseline", "jit", "cfunc"], REFERENCES = ["class", "memory"];

/*
 * The depth of the last frame that is shared, which stays, as do those from the first of a language on, unless they are
 * many: a server has a hundred rows below its own work. Of who keeps memory alive all rows stay: they are the answer.
 * 0: there is nothing to fold.
 */
function trunkOf(t) {
	let i = 0, next = 0, named = 0;
	do {
		i = next;
		next = 0;
		const kind = data.kinds[kindOf(t.fn[i])];
		if (REFERENCES.includes(kind))
			break;
		named ||= CODE.includes(kind) ? i : 0;
		for (let k = i + 1; k < t.end[i] && !next; k = t.end[k])
			next = t.total[k] >= (named ? NEARLY_ALL : SHARED) * t.total[0] ? k : 0;
	} while (next);
	if (named && (t.depth[i] - t.depth[named] < TRUNK_LONG || t.end[i] === i + 1))
		i = named;
	trunkEnd = i;
	return t.end[i] > i + 1 && t.depth[i] > TRUNK_LEAST ? t.depth[i] : 0;
}

/* How many rows above the root are folded now. */
function foldedRows() {
	if (!trunk || trunkOpen || printing || picturing || tree !== plain || (zoom && tree.depth[zoom] < trunk))
		return 0;
	return trunk - 1;
}

const isFolded = (i) => tree.depth[i] > 0 && tree.depth[i] <= foldedRows();

/* In which row a depth is, and the reverse; of the handle's row there is no depth. */
function rowOf(depth) {
	const folded = foldedRows();
	return !folded || depth <= 0 ? depth : depth <= folded ? 1 : depth - folded + 1;
}

function depthOf(row) {
	const folded = foldedRows();
	return !folded || row <= 0 ? row : row === 1 ? NaN : row + folded - 1;
}

function openTrunk(open) {
	if (!trunk || tree !== plain)
		return;
	const last = trunkEnd;
	changeAround(zoom || last, () => {
		trunkOpen = open;
		chosen = hover = -1;
		tip.hidden = true;
	});
	showLegend();
	writeHash(false);
}

function trunkText() {
	const names = [];
	for (let i = plain.parent[trunkEnd]; i; i = plain.parent[i])
		names.unshift(briefs[plain.fn[i]] ??= brief(nameOf(plain.fn[i]), data.kinds[kindOf(plain.fn[i])]));
	const whom = plain.total[trunkEnd] === plain.total[0] ? "all samples" : percent(plain.total[trunkEnd], plain.total[0]) + " of samples";
	return `\u22ef ${names.length} rows that ${whom} share: ${names.join(" \u203a ")}`;
}

/* The handle, on a canvas whose top is at top. */
function drawHandle(p, top) {
	if (!foldedRows())
		return;
	const y = rowTop(1) - top, text = cut(trunkText(), width - 2 * PAD);
	p.rect(0, y, width, ROW - GAP, palette.handle, "");
	p.text(text, PAD, y + (ROW - GAP) / 2 + 0.5, palette.soft);
}

function isHandle(clientY) {
	const row = Math.floor((clientY - canvas.getBoundingClientRect().top + offset()) / ROW);
	return foldedRows() > 0 && row * ROW === rowTop(1);
}
