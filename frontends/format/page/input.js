/* SPDX-License-Identifier: Apache-2.0 */
/* Mouse, touch, keys, and the start. */
const focusGraph = () => (shown === "table" ? view : canvas).focus({ preventScroll: true });

function escape(typing) {
	focusGraph();
	if (!$("menu").hidden)
		closeMenu();
	else if (!$("source").hidden)
		closeSource();
	else if ($("export").open)
		$("export").open = false;
	else if (typing)
		search("");
	else if (chosen >= 0)
		choose(-1);
	else if (shown === "callers")
		leave();
	else if (lens)
		setLens(...nodeSpan());
	else if (zoom)
		zoomOut();
	else if (query)
		search("");
	else if (filters.length)
		setFilters(filters.slice(0, -1));
	else if (part)
		setRange(null);
}

function zoomOut() {
	zoomTo(0);
	if (shown === "table")
		sortTable();
}

function search(text) {
	$("search").value = text;
	setQuery(text);
	if ($("beyond"))
		$("beyond").ariaPressed = String(query === BEYOND);
	if (shown === "table")
		sortTable();
	redraw();
	writeHash(false);
}

/* The next or last frame beside this one. */
function sibling(i, step) {
	const p = tree.parent[i];
	let k = p + 1, before = i;
	if (step > 0)
		return i && tree.end[i] < tree.end[p] && tree.depth[tree.end[i]] === tree.depth[i] ? tree.end[i] : i;
	for (; i && k < i; k = tree.end[k])
		if (tree.depth[k] === tree.depth[i])
			before = k;
	return before;
}

function widestChild(i, depth) {
	let best = i, most = 0;
	for (let k = i + 1; k < tree.end[i]; k = tree.end[k])
		if (tree.total[k] > most && tree.depth[k] === depth)
			[best, most] = [k, tree.total[k]];
	return best;
}

/* Where the widest stack ends, which in a tall graph is out of view. */
function widest() {
	let i = zoom;
	for (let k = i; ; i = k) {
		k = widestChild(i, tree.depth[i] + 1);
		if (k === i || tree.total[k] < tree.self[i])
			return i;
	}
}

function arrow(key) {
	const i = chosen >= 0 ? chosen : zoom, d = tree.depth[i];
	const step = (key === "ArrowUp") === (shown === "flame") ? 1 : -1;
	if (chosen < 0)
		return choose(zoom);
	if (key === "ArrowLeft" || key === "ArrowRight")
		return choose(sibling(i, key === "ArrowRight" ? 1 : -1));
	choose(d * step < 0 || (step < 0 && !tree.sandwich) ? tree.parent[i] : widestChild(i, d + step));
}

const candidate = () => (shown === "table" ? -1 : chosen >= 0 ? chosen : hover >= 0 ? hover : zoom);

const KEYS = {
	"/": () => ($("search").focus(), $("search").select()),
	f: () => show("flame"),
	i: () => show(shown === "icicle" ? "flame" : "icicle"),
	b: () => show(shown === "inverted" ? "flame" : "inverted"),
	u: () => hasRecursion() && foldRecursion(),
	t: () => show(shown === "table" ? came : "table"),
	c: () => candidate() > 0 && show("callers", canon[tree.fn[candidate()]]),
	d: () => nextTheme(),
	h: () => unfoldHead(),
	m: () => shown !== "table" && menuByKey(),
	s: () => candidate() > 0 && hasSource(tree.fn[candidate()]) && openSource(tree.fn[candidate()]),
	r: () => openTrunk(!trunkOpen),
	w: () => shown !== "table" && choose(widest()),
	x: () => times && remake(() => (timeShut = !timeShut)),
};

function onKey(e) {
	const typing = e.target === $("search"), pressed = e.target.closest?.("button, summary, select");
	if (e.ctrlKey || e.metaKey || e.altKey)
		return;
	if (e.key === "Escape")
		escape(typing);
	else if (typing || e.target.localName === "select")
		return;
	else if (Object.hasOwn(KEYS, e.key))
		KEYS[e.key]();
	else if (e.key.startsWith("Arrow") && shown !== "table")
		arrow(e.key);
	else if (e.key === "Enter" && chosen >= 0 && !pressed)
		enter(chosen);
	else
		return;
	e.preventDefault();
}

/* In a flame zoom to it; among callers and callees go to it. */
function enter(i) {
	if (shown === "callers")
		show("callers", canon[tree.fn[i]]);
	else
		zoomTo(i);
}

function unfoldHead() {
	head = head ? "" : "open";
	showHead();
	relayout();
	writeHash(false);
}

function nextTheme() {
	look = isDark() ? "light" : "dark";
	theme();
	showTime();
	writeHash(false);
}

/* The head scrolls and would cut the menu off, so it has its place in the window. */
function placeMenu() {
	const menu = $("export").lastElementChild, r = $("export").getBoundingClientRect();
	menu.style.top = r.bottom + 4 + "px";
	menu.style.left = Math.max(8, Math.min(r.right, innerWidth - 8) - menu.offsetWidth) + "px";
}

async function onExport(kind) {
	$("export").open = false;
	save(await EXPORTS[kind](), kind);
}

function onClick(e) {
	const i = nodeAt(e.clientX, e.clientY);
	chosen = -1;
	touched = e.pointerType !== "mouse";
	if (isHandle(e.clientY))
		return openTrunk(true);
	if (touched && i < 0)
		hoverAt(-1);
	if (i >= 0 && shown === "callers")
		enter(i);
	else if (i >= 0)
		changeAround(i, () => (zoomTo(i), hoverAt(i, e.clientX, e.clientY)));
}

function listenToButtons() {
	$("search").addEventListener("input", () => search($("search").value));
	$("find").addEventListener("submit", (e) => (e.preventDefault(), focusGraph()));
	$("reset").onclick = () => (shown === "callers" ? leave() : zoomOut());
	$("theme").onclick = nextTheme;
	$("about").onclick = unfoldHead;
	$("more").onclick = () => (focusGraph(), choose(widest()));
	$("table").classList.toggle("compares", isDiff);
	for (const b of document.querySelectorAll("#found button"))
		b.onclick = () => filter(b.value, query);
	$("by").append(...ROWS_BY.map((name) => Object.assign(element("option", "by " + name), { value: name })));
	$("by").onchange = () => ((by = $("by").value), sortTable(), writeHash(false));
	$("menu").addEventListener("keydown", moveInMenu);
	for (const b of document.querySelectorAll("#views button"))
		b.onclick = () => show(b.value);
	for (const b of document.querySelectorAll("#export button"))
		b.onclick = () => onExport(b.value);
	$("export").addEventListener("toggle", placeMenu);
	document.addEventListener("pointerdown", (e) => $("menu").contains(e.target) || closeMenu());
	document.addEventListener("click", (e) => $("export").contains(e.target) || ($("export").open = false));
}

function listen() {
	const hoverBy = (e) => hoverAt(nodeAt(e.clientX, e.clientY), e.clientX, e.clientY);
	canvas.addEventListener("pointermove", (e) => e.pointerType === "mouse" && hoverBy(e));
	canvas.addEventListener("pointerleave", (e) => e.pointerType === "mouse" && hoverAt(-1));
	canvas.addEventListener("click", onClick);
	canvas.addEventListener("contextmenu", onMenu);
	canvas.addEventListener("wheel", onWheel, { passive: false });
	document.addEventListener("keydown", onKey);
	listenToButtons();
	listenToTime();
	view.addEventListener("scroll", () => (hover >= 0 && !touched && hoverAt(-1), redraw()), { passive: true });
	addEventListener("popstate", () => (readHash(), theme(), refresh()));
	darkness.addEventListener("change", () => (theme(), refresh()));
	addEventListener("beforeprint", () => setPrinting(true));
	addEventListener("afterprint", () => setPrinting(false));
	for (const e of [stage, view])
		new ResizeObserver(relayout).observe(e);
	addEventListener("resize", relayout);
}

function main() {
	showBanner();
	showCalls();
	showRequests();
	palette = colours(false);
	readHash();
	theme();
	refresh();
	listen();
	focusGraph();
}

main();
