/* SPDX-License-Identifier: Apache-2.0 */
/* The picture: colours, labels, layout, drawing, and which frame is where. */

/* OKLCH (lightness, chroma, degrees of hue) as #rrggbb, which every canvas and every reader of SVG takes. */
function rgb(l, c, h) {
	const a = c * Math.cos((h * Math.PI) / 180), b = c * Math.sin((h * Math.PI) / 180);
	const [x, y, z] = [l + 0.3963377774 * a + 0.2158037573 * b, l - 0.1055613458 * a - 0.0638541728 * b,
		l - 0.0894841775 * a - 1.291485548 * b].map((v) => v ** 3);
	const linear = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z, -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z,
		-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
	return "#" + linear.map((v) => {
		const s = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
		return Math.round(Math.min(1, Math.max(0, s)) * 255).toString(16).padStart(2, "0");
	}).join("");
}

const STEPS = 6;

/* From what shrank, by what is as before, to what grew. */
function changes(dark, faded) {
	const l = dark ? 0.4 : 0.9, deep = dark ? 0.2 : -0.25;
	return Array.from({ length: 2 * STEPS + 1 }, (_, i) => {
		const d = (i - STEPS) / STEPS, m = Math.abs(d);
		return rgb(l + deep * m + (faded ? (dark ? -0.1 : 0.05) : 0), (0.003 + 0.175 * m) * (faded ? 0.35 : 1), d < 0 ? 250 : 25);
	});
}

function colours(dark) {
	const l = dark ? 0.5 : 0.82, c = dark ? 0.085 : 0.1;
	const shade = (kind, step, dl, dc) => {
		const [k, h] = HUES[kind] || HUES.unknown;
		return rgb(l + dl + step * 0.013, c * k * dc, h + step * 2.5);
	};
	const ramp = (dl, dc) => data.kinds.map((kind) => [-2, -1, 0, 1, 2].map((s) => shade(kind, s, dl, dc)));
	return {
		fill: ramp(0, 1), above: ramp(dark ? -0.12 : 0.06, 0.5), dim: ramp(dark ? -0.24 : 0.11, 0.3),
		inlined: ramp(dark ? -0.05 : 0.045, 0.8), approx: ramp(dark ? -0.05 : 0.02, 0.25),
		change: changes(dark, false), dimChange: changes(dark, true), hit: dark ? "#c83c92" : "#f573ba",
		ink: dark ? "#f4f2ee" : "#1d1c1a", faint: dark ? "#8d8a84" : "#8a8680", ring: dark ? "#ff7a4d" : "#d4481d",
		paper: dark ? "#141518" : "#faf9f7", handle: dark ? "#26292f" : "#ebe8e2", soft: dark ? "#9a978f" : "#6d6a65",
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

/* How a frame changed, from -STEPS to STEPS. What may be chance, less than three standard deviations of counts, is paler. */
function changeOf(now, base) {
	const d = now - base, noise = Math.sqrt(now + base * (data.baseScale ?? 1));
	return d ? Math.round((d / (now + base)) * Math.min(1, Math.abs(d) / (3 * noise)) * STEPS) : 0;
}

function fillOf(i) {
	const f = tree.fn[i], k = kindOf(f), above = i < zoom && tree.end[i] >= tree.end[zoom];
	const dim = hits ? !hits[f] : spot >= 0 && k !== spot;
	if (isDiff)
		return (dim || above ? palette.dimChange : palette.change)[STEPS + changeOf(tree.nowTotal[i], tree.baseTotal[i])];
	if (hits && !dim)
		return palette.hit;
	const flags = field(f, 4), full = flags & APPROX ? palette.approx : flags & INLINED ? palette.inlined : palette.fill;
	return (dim ? palette.dim : above ? palette.above : full)[k][buckets[f]];
}

const glyphs = new Map();

function glyphWidth(ch) {
	let w = glyphs.get(ch);
	if (w === undefined) {
		ctx.font = font; /* a canvas forgets it when its size changes */
		glyphs.set(ch, (w = ctx.measureText(ch).width));
	}
	return w;
}

/* As much of s as fits, with an ellipsis if that is not all; nothing if too little fits to mean anything. */
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

/*
 * What is left of a name when there is no room for all of it: of C++ and Rust neither types nor namespaces, of scripts no
 * file, of Java no package, of what has no symbol only the offset.
 */
function brief(name, kind) {
	const offset = /\+0x[0-9a-f]+$/.exec(name), slot = /::\[v.*?]$/.exec(name);
	if (offset)
		return offset[0];
	if (slot)
		return brief(name.slice(0, slot.index), kind) + slot[0];
	if (kind === "kernel" || (kind === "native" && !/\w<.*>/.test(name)))
		return name;
	if (!["native", "c++", "rust"].includes(kind))
		return name.replace(/ \([^()]*:[^()]*\)$/, "").replace(/^(?:[\w$]+[./])+(?=[\w$]+\.[\w$<>]+$)/, "");
	let depth = 0, out = "";
	for (let i = 0; i < name.length; i++) {
		if (!depth && /^operator\W/.test(name.slice(i, i + 9)) && !/\w$/.test(out))
			return name.slice(i);
		depth += "<({".includes(name[i]) ? 1 : 0;
		out += depth ? "" : name[i];
		depth -= depth && ">)}".includes(name[i]) ? 1 : 0;
	}
	return out.replace(/ (?:const|\[.*)$/g, "").split("::").pop().trim().split(" ").pop() || name;
}
const briefs = [];

/* The name as it fits. */
function label(f, room) {
	const whole = marksOf(f) + nameOf(f), text = cut(whole, room);
	return text === whole ? text : cut(marksOf(f) + (briefs[f] ??= brief(nameOf(f), data.kinds[kindOf(f)])), room);
}

/* Of bytes, how many objects, blocks or calls have them. What a root has itself is not what it keeps. */
function timesOf(i) {
	const n = data.kinds[kindOf(tree.fn[i])] === "memory" ? 0 : tree.more?.[i];
	return n > 1 ? " \u00d7" + n.toLocaleString("en") : "";
}

/* How many bytes are in it and above it, of a difference by how many there are more or less. */
function bytesOf(i) {
	const n = tree.nowTotal[i] - (isDiff ? tree.baseTotal[i] / (data.baseScale || 1) : 0);
	return data.meta.unit !== "bytes" ? "" : ` \u00b7 ${!isDiff ? "" : n < 0 ? "\u2212" : "+"}${amount(Math.abs(n))}`;
}

/* With its numbers, as far as they fit. */
function numbered(i, room) {
	const text = label(tree.fn[i], room), all = [timesOf(i) + bytesOf(i), bytesOf(i), timesOf(i)].map((n) => text + n);
	return !text || text.endsWith("\u2026") ? text : all.find((s) => cut(s, room) === s) ?? text;
}

function redraw() {
	if (!pending)
		pending = requestAnimationFrame(draw);
}

const span = () => lens ?? nodeSpan();

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

const rowTop = (depth) => (graphView() === "flame" ? root - rowOf(depth) : root + rowOf(depth)) * ROW;

/* What draws: on a canvas. picture() has another for SVG. */
function onCanvas(g) {
	let last = "";
	const fill = (c) => c !== last && (g.fillStyle = last = c);
	g.textBaseline = "middle";
	return {
		rect(x, y, w, h, colour, line) {
			fill(colour);
			if (w > THICK) {
				g.beginPath();
				g.roundRect(x, y, w, h, 2.5);
				g.fill();
			} else {
				g.fillRect(x, y, w, h);
			}
			if (!line)
				return;
			g.strokeStyle = line;
			g.lineWidth = 1.5;
			g.strokeRect(x + 0.75, y + 0.75, Math.max(0.5, w - 1.5), h - 1.5);
		},
		text(s, x, y, colour, bold) {
			fill(colour);
			g.font = (bold ? "bold " : "") + font;
			g.fillText(s, x, y);
		},
	};
}

const lineCanvas = document.createElement("canvas"), lineCtx = lineCanvas.getContext("2d"), words = new Map();

/* A colour as a pixel of ImageData. */
function word(colour) {
	let w = words.get(colour);
	if (w === undefined) {
		const v = parseInt(colour.slice(1), 16);
		words.set(colour, (w = (0xff000000 | ((v & 255) << 16) | (v & 0xff00) | (v >> 16)) >>> 0));
	}
	return w;
}

/* Frames too narrow for corners and names are thousands. They become pixels of an image with a line a row, drawn stretched. */
function onLines(first, n, dpr) {
	const w = Math.round(width * dpr), image = lineCtx.createImageData(w, n);
	const pixels = new Uint32Array(image.data.buffer), used = new Uint8Array(n);
	return {
		put(row, left, right, colour) {
			const a = Math.round(left * dpr), b = Math.min(w, Math.max(a + 1, Math.round((right - (right - left > 3 ? GAP : 0)) * dpr)));
			const at = (row - first) * w, v = word(colour);
			used[row - first] = 1;
			for (let x = Math.min(a, w - 1); x < b; x++)
				pixels[at + x] = v;
		},
		flush(y) {
			[lineCanvas.width, lineCanvas.height] = [w, n];
			lineCtx.putImageData(image, 0, 0);
			ctx.imageSmoothingEnabled = false;
			for (let r = 0; r < n; r++)
				if (used[r])
					ctx.drawImage(lineCanvas, 0, r, w, 1, 0, y + r * ROW, w / dpr, ROW - GAP);
		},
	};
}

/* The frames between two heights of the graph. */
function drawFrames(p, [a, b], top, bottom, thin) {
	const grows = { flame: -1, icicle: 1, inverted: 1, callers: 0 }[graphView()], drawn = new Float64Array(rows + 1);
	visible(a, b, (i, left, right) => {
		const y = rowTop(tree.depth[i]);
		if (grows < 0 ? y + ROW <= top : grows > 0 && y >= bottom)
			return false;
		if (y >= bottom || y + ROW <= top || isFolded(i))
			return true;
		/* Of frames narrower than a pixel one is drawn for all in it. */
		const row = y / ROW, begin = Math.max(0, left), end = Math.min(width, right);
		if (right - left < 1 && right < drawn[row])
			return true;
		drawn[row] = Math.ceil(right * 2) / 2;
		if (thin && end - begin < THICK && i !== hover && i !== chosen)
			thin.put(row, begin, end, fillOf(i));
		else
			drawFrame(p, i, begin, end, y - top);
		return true;
	});
	drawHandle(p, top);
}

/* How many rows lie beyond the edge that stacks grow to. */
function showMore(top) {
	const up = shown === "flame", box = view.getBoundingClientRect(), low = rows * ROW - top - view.clientHeight;
	const n = shown === "table" || shown === "callers" || printing ? 0 : Math.floor((up ? top : low) / ROW);
	$("more").hidden = n < 1;
	$("more").textContent = (up ? "\u2191 " : "\u2193 ") + n + (n === 1 ? " more row" : " more rows");
	$("more").style.top = (up ? box.top + 4 : box.bottom - 32) + "px";
}

function draw(now) {
	pending = 0;
	if (stale)
		layout();
	const dpr = density(), top = offset();
	showMore(top);
	if (shown === "table" && !printing)
		return fillTable();
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.clearRect(0, 0, width, height);
	const first = Math.floor(top / ROW), n = Math.min(rows - first, Math.ceil(height / ROW) + 1);
	const thin = onLines(first, Math.max(1, n), dpr);
	drawFrames(onCanvas(ctx), range(now), top, top + height, thin);
	thin.flush(first * ROW - top);
}

function drawFrame(p, i, left, right, y) {
	const x = Math.round(left * 2) / 2, w = Math.max(THIN, Math.round(right * 2) / 2 - x - (right - left > 3 ? GAP : 0));
	const line = i === chosen || (tree.sandwich && !i) ? palette.ring : i === hover ? palette.ink :
		isDiff && hits && hits[tree.fn[i]] ? palette.hit : "";
	p.rect(x, y, w, ROW - GAP, fillOf(i), line);
	if (w > 22)
		drawLabel(p, i, x, w, y);
}

function drawLabel(p, i, x, w, y) {
	const f = tree.fn[i], faint = hits ? !hits[f] : spot >= 0 && kindOf(f) !== spot, text = numbered(i, w - 2 * PAD);
	if (text)
		p.text(text, x + PAD, y + (ROW - GAP) / 2 + 0.5, faint ? palette.faint : palette.ink);
}

/* By how much of the graph the canvas, which only covers what is in view, lies below its top. */
const offset = () => Math.round(canvas.getBoundingClientRect().top - stage.getBoundingClientRect().top);

const density = () => (printing ? DENSE : devicePixelRatio || 1);

/* How many rows there are at this width, and in which of them the root is. */
function measure() {
	let least = 0, most = 0;
	visible(...span(), (i) => void ((least = Math.min(least, tree.depth[i])), (most = Math.max(most, tree.depth[i]))));
	rows = rowOf(most) - least + 1;
	root = graphView() === "flame" ? rows - 1 : -least;
}

function layout() {
	const dpr = density(), table = shown === "table" && !printing;
	stale = false;
	view.classList.toggle("flame", shown === "flame");
	view.classList.toggle("table", table);
	stage.hidden = table;
	$("table").hidden = !table;
	view.style.minHeight = "";
	if (table)
		return;
	width = printing ? PRINT_WIDTH : stage.clientWidth;
	measure();
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

const isDark = () => (look ? look === "dark" : darkness.matches);

function theme() {
	if (look)
		document.documentElement.dataset.theme = look;
	else
		delete document.documentElement.dataset.theme;
	palette = colours(isDark() && !printing);
	font = FONT + getComputedStyle(document.body).fontFamily;
	ctx.font = font;
	glyphs.clear();
	showLegend();
	redraw();
}

function nodeAt(clientX, clientY) {
	const box = canvas.getBoundingClientRect(), [a, b] = span();
	const v = a + ((clientX - box.left) / width) * (b - a), row = Math.floor((clientY - box.top + offset()) / ROW);
	const depth = depthOf(graphView() === "flame" ? root - row : row - root);
	for (let i = 0; i < tree.n; ) {
		if (v < tree.start[i] || v >= tree.start[i] + tree.total[i])
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
