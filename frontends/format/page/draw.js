/* SPDX-License-Identifier: Apache-2.0 */
/* The picture: colours, labels, layout, drawing, and which frame is where. */
function colours(dark) {
	const l = dark ? 0.5 : 0.82, c = dark ? 0.085 : 0.1, css = getComputedStyle(document.documentElement);
	const shade = (kind, step, dl, dc) => {
		const [k, h] = HUES[kind] || HUES.unknown;
		return `oklch(${l + dl + step * 0.013} ${c * k * dc} ${h + step * 2.5})`;
	};
	const ramp = (dl, dc) => data.kinds.map((kind) => [-2, -1, 0, 1, 2].map((s) => shade(kind, s, dl, dc)));
	return {
		fill: ramp(0, 1), above: ramp(dark ? -0.12 : 0.06, 0.5), dim: ramp(dark ? -0.24 : 0.11, 0.3),
		hit: dark ? "oklch(.6 .2 350)" : "oklch(.72 .19 350)", ink: dark ? "#f4f2ee" : "#1d1c1a",
		faint: dark ? "#8d8a84" : "#8a8680", ring: css.getPropertyValue("--accent"),
	};
}

function bucket(f) {
	const s = nameOf(f);
	let h = 0;
	for (let i = 0; i < s.length && i < 40; i++)
		h = (h * 31 + s.charCodeAt(i)) | 0;
	return (h >>> 3) % 5;
}
const buckets = Uint8Array.from({ length: nfunctions }, (_, f) => bucket(f));

function fillOf(i) {
	const f = tree.fn[i], k = kindOf(f), above = i < zoom && tree.end[i] >= tree.end[zoom];
	if (hits && hits[f])
		return palette.hit;
	if (hits || (spot >= 0 && k !== spot))
		return palette.dim[k][buckets[f]];
	return (above ? palette.above : palette.fill)[k][buckets[f]];
}

const glyphs = new Map();

function glyphWidth(ch) {
	let w = glyphs.get(ch);
	if (w === undefined)
		glyphs.set(ch, (w = ctx.measureText(ch).width));
	return w;
}

/* As much of s as fits, with an ellipsis if that is not all; nothing if too little fits to tell anything. */
function cut(s, room) {
	const dots = glyphWidth("\u2026");
	let w = 0, fits = 0, at = 0;
	for (const ch of s) {
		w += glyphWidth(ch);
		if (w > room)
			return fits >= MIN_LABEL ? s.slice(0, fits) + "\u2026" : "";
		at += ch.length;
		if (w + dots <= room)
			fits = at;
	}
	return s;
}

function redraw() {
	if (!pending)
		pending = requestAnimationFrame(draw);
}

const span = () => [tree.start[zoom], tree.start[zoom] + (tree.total[zoom] || 1)];

/* The range of samples that is in view, on its way from the last one. */
function range(now) {
	const t = motion.matches ? 1 : Math.min(1, (now - movedAt) / MOVE_MS), e = 1 - (1 - t) ** 3, to = span();
	if (t < 1)
		redraw();
	return t < 1 ? [from[0] + (to[0] - from[0]) * e, from[1] + (to[1] - from[1]) * e] : to;
}

/* Calls fn(node, left, right) for each frame wide enough to see; fn returns false to leave out what is above it. */
function visible(a, b, fn) {
	const scale = width / (b - a);
	for (let i = 0; i < tree.n; ) {
		const left = (tree.start[i] - a) * scale, w = tree.total[i] * scale;
		if (w < THIN || left >= width - 0.01 || left + w <= 0.01 || fn(i, left, left + w) === false)
			i = tree.end[i];
		else
			i++;
	}
}

const rowTop = (depth) => (flame ? rows - 1 - depth : depth) * ROW;

function draw(now) {
	pending = 0;
	if (stale)
		layout();
	const [a, b] = range(now), dpr = density(), top = offset(), bottom = top + height;
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.clearRect(0, 0, width, height);
	ctx.font = font;
	ctx.textBaseline = "middle";
	visible(a, b, (i, left, right) => {
		const y = rowTop(tree.depth[i]);
		if (flame ? y + ROW <= top : y >= bottom)
			return false;
		if (y < bottom && y + ROW > top)
			drawFrame(i, Math.max(0, left), Math.min(width, right), y - top);
		return true;
	});
}

function drawFrame(i, left, right, y) {
	const x = Math.round(left * 2) / 2, w = Math.max(THIN, Math.round(right * 2) / 2 - x - (right - left > 3 ? GAP : 0));
	ctx.fillStyle = fillOf(i);
	if (w > 8) {
		ctx.beginPath();
		ctx.roundRect(x, y, w, ROW - GAP, 2.5);
		ctx.fill();
	} else {
		ctx.fillRect(x, y, w, ROW - GAP);
	}
	if (i === hover || i === chosen) {
		ctx.strokeStyle = i === chosen ? palette.ring : palette.ink;
		ctx.lineWidth = 1.5;
		ctx.strokeRect(x + 0.75, y + 0.75, Math.max(0.5, w - 1.5), ROW - GAP - 1.5);
	}
	if (w > 22)
		drawLabel(i, x, w, y);
}

function drawLabel(i, x, w, y) {
	const f = tree.fn[i], faint = hits ? !hits[f] : spot >= 0 && kindOf(f) !== spot;
	ctx.fillStyle = faint ? palette.faint : palette.ink;
	ctx.fillText(cut(marksOf(f) + nameOf(f), w - 2 * PAD), x + PAD, y + (ROW - GAP) / 2 + 0.5);
}

/* By how much of the graph the canvas, which only covers what is in view, lies below its top. */
const offset = () => Math.round(canvas.getBoundingClientRect().top - stage.getBoundingClientRect().top);

const density = () => (printing ? PRINT_DENSITY : devicePixelRatio || 1);

function layout() {
	const dpr = density(), [a, b] = span();
	let deepest = 0;
	stale = false;
	view.classList.toggle("flame", flame);
	width = printing ? PRINT_WIDTH : stage.clientWidth;
	visible(a, b, (i) => void (deepest = Math.max(deepest, tree.depth[i])));
	rows = deepest + 1;
	stage.style.height = rows * ROW + "px";
	view.style.minHeight = Math.min(rows, MIN_ROWS) * ROW + "px";
	height = Math.min(rows * ROW, printing ? PRINT_HEIGHT : view.clientHeight);
	canvas.style.height = height + "px";
	if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(height * dpr)) {
		canvas.width = Math.round(width * dpr);
		canvas.height = Math.round(height * dpr);
	}
}

/* To be laid out before it is drawn: an observer of sizes must not change sizes itself. */
function relayout() {
	stale = true;
	redraw();
}

/* Changes something and lays out anew while node keeps its height on the screen. */
function changeAround(node, change) {
	const screen = () => stage.getBoundingClientRect().top + rowTop(tree.depth[node]);
	const before = screen();
	change();
	layout();
	view.scrollBy(0, screen() - before);
	redraw();
}

/* Scrolls so that node is in view. */
function reveal(node) {
	const box = view.getBoundingClientRect(), y = rectOf(node).y;
	if (y < box.top || y + ROW > box.bottom)
		view.scrollBy(0, y - (box.top + box.bottom) / 2);
}

/* On paper there is more than what is in view, and it is light. */
function setPrinting(on) {
	printing = on;
	theme();
	layout();
	draw(Infinity);
}

function theme() {
	palette = colours(darkness.matches && !printing);
	font = FONT + getComputedStyle(document.body).fontFamily;
	ctx.font = font;
	glyphs.clear();
	showLegend();
	redraw();
}

function nodeAt(clientX, clientY) {
	const box = canvas.getBoundingClientRect(), [a, b] = span();
	const v = a + ((clientX - box.left) / width) * (b - a), row = Math.floor((clientY - box.top + offset()) / ROW);
	const depth = flame ? rows - 1 - row : row;
	let i = 0;
	while (i < tree.n && tree.depth[i] <= depth && v >= tree.start[i]) {
		if (v >= tree.start[i] + tree.total[i])
			i = tree.end[i];
		else if (tree.depth[i] === depth)
			return (tree.total[i] / (b - a)) * width >= THIN ? i : -1;
		else
			i++;
	}
	return -1;
}

/* Where a frame is on the screen. */
function rectOf(i) {
	const box = canvas.getBoundingClientRect(), [a, b] = span(), scale = width / (b - a);
	const left = Math.max(0, (tree.start[i] - a) * scale), right = Math.min(width, (tree.start[i] + tree.total[i] - a) * scale);
	return { x: box.left + left, y: box.top - offset() + rowTop(tree.depth[i]), width: right - left, height: ROW };
}
