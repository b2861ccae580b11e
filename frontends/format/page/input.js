/* SPDX-License-Identifier: Apache-2.0 */
/* Mouse, touch, keys, and the start. */
function flip() {
	flame = !flame;
	refresh();
	writeHash(false);
}

const focusGraph = () => canvas.focus({ preventScroll: true });

function escape(typing) {
	focusGraph();
	if (typing)
		search("");
	else if (chosen >= 0)
		choose(-1);
	else if (zoom)
		zoomTo(0);
	else
		search("");
}

function search(text) {
	$("search").value = text;
	setQuery(text);
	redraw();
	writeHash(false);
}

function sibling(i, step) {
	const p = tree.parent[i];
	if (step > 0)
		return i && tree.end[i] < tree.end[p] ? tree.end[i] : i;
	let k = p + 1;
	while (i && k < i && tree.end[k] < i)
		k = tree.end[k];
	return i && k < i ? k : i;
}

function widestChild(i) {
	let best = i, most = 0;
	for (let k = i + 1; k < tree.end[i]; k = tree.end[k])
		if (tree.total[k] > most)
			[best, most] = [k, tree.total[k]];
	return best;
}

function arrow(key) {
	const i = chosen >= 0 ? chosen : zoom;
	if (chosen < 0)
		return choose(zoom);
	if (key === "ArrowLeft" || key === "ArrowRight")
		return choose(sibling(i, key === "ArrowRight" ? 1 : -1));
	choose((key === "ArrowUp") === flame ? widestChild(i) : tree.parent[i]);
}

function onKey(e) {
	const typing = e.target === $("search"), pressed = e.target instanceof HTMLButtonElement;
	if (e.ctrlKey || e.metaKey || e.altKey)
		return;
	if (e.key === "Escape")
		escape(typing);
	else if (typing)
		return;
	else if (e.key === "/")
		$("search").focus(), $("search").select();
	else if (e.key === "i")
		flip();
	else if (e.key.startsWith("Arrow"))
		arrow(e.key);
	else if (e.key === "Enter" && chosen >= 0 && !pressed)
		zoomTo(chosen);
	else
		return;
	e.preventDefault();
}

function listen() {
	canvas.addEventListener("pointermove", (e) => e.pointerType === "mouse" && hoverAt(nodeAt(e.clientX, e.clientY), e.clientX, e.clientY));
	canvas.addEventListener("pointerleave", (e) => e.pointerType === "mouse" && hoverAt(-1));
	canvas.addEventListener("click", (e) => {
		const i = nodeAt(e.clientX, e.clientY);
		chosen = -1;
		touched = e.pointerType !== "mouse";
		if (touched && i < 0)
			hoverAt(-1);
		if (i >= 0)
			changeAround(i, () => (zoomTo(i), hoverAt(i, e.clientX, e.clientY)));
	});
	document.addEventListener("keydown", onKey);
	$("search").addEventListener("input", () => search($("search").value));
	$("find").addEventListener("submit", (e) => (e.preventDefault(), focusGraph()));
	$("flip").onclick = flip;
	$("reset").onclick = () => zoomTo(0);
	view.addEventListener("scroll", () => (hover >= 0 && !touched && hoverAt(-1), redraw()), { passive: true });
	addEventListener("popstate", () => (readHash(), refresh()));
	darkness.addEventListener("change", theme);
	addEventListener("beforeprint", () => setPrinting(true));
	addEventListener("afterprint", () => setPrinting(false));
	for (const e of [stage, view])
		new ResizeObserver(relayout).observe(e);
	addEventListener("resize", relayout);
}

function main() {
	showBanner();
	readHash();
	theme();
	refresh();
	listen();
	focusGraph();
}

main();
