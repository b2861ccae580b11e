/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, left out or hidden by name, as pprof's focus, ignore and hide; and the menu of a frame. */
const FILTERS = ["focus", "ignore", "hide"], FILTER_WORDS = { focus: "only", ignore: "without", hide: "hidden" }, FILTERS_MOST = 30;
const GONE = 0xffffffff;

/* Functions that text means: a name behind "=", else what search takes. */
function matching(text) {
	const level = levelOf(text), re = text[0] === "=" || level ? null : compile(text), name = text.slice(1);
	const is = text[0] === "=" ? (s) => s === name : re ? (s) => re.test(s) : (s) => s.includes(text);
	return Uint8Array.from({ length: nfunctions }, (_, f) => (level ? chanceOf(f) < level : is(nameOf(f))));
}

/* stays: of each node of the whole tree, do its own samples? live: does any at or below it? hidden: of each function. */
function filterNodes() {
	const of = (what) => filters.filter((s) => s[0] === what).map((s) => matching(s[1]));
	const focus = of("focus"), ignore = of("ignore"), hide = of("hide"), all = 2 ** focus.length - 1;
	const seen = new Uint32Array(whole.n), stays = new Uint8Array(whole.n), live = new Uint8Array(whole.n);
	for (let i = 0; i < whole.n; i++) {
		const f = whole.fn[i], up = i ? seen[whole.parent[i]] : 0;
		seen[i] = up === GONE || ignore.some((a) => a[f]) ? GONE : focus.reduce((m, a, k) => (a[f] ? m | (1 << k) : m), up);
		stays[i] = seen[i] === all;
	}
	for (let i = whole.n - 1; i >= 0; i--) {
		live[i] |= stays[i] && (whole.now[i] || whole.base?.[i]) ? 1 : 0;
		live[whole.parent[i]] |= live[i];
	}
	return { stays, live, hidden: (f) => hide.some((a) => a[f]) };
}

const setFilters = (next) => remake(() => (filters = next));

function filter(what, text) {
	if (text && filters.length < FILTERS_MOST && !filters.some(([w, t]) => w === what && t === text))
		setFilters([...filters, [what, text]]);
}

function showSifts() {
	$("filters").hidden = !filters.length;
	$("filters").replaceChildren(...filters.map(([what, text], i) =>
		button(FILTER_WORDS[what] + " " + text.replace(/^=/, ""), () => setFilters(filters.filter((_, k) => k !== i)), "Click: undo")));
	if (filters.some((s) => s[0] !== "hide")) {
		const left = element("small", percent(plain.nowTotal[0], whole.nowTotal[0]) + " of all is left");
		$("filters").append(left);
	}
}

/* Files have no right to the clipboard in some browsers; what is selected can be copied in all. */
async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = element("textarea", text);
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
		focusGraph();
	}
}

/* The names from the root to node i of what is drawn, a line each; of callers to the function that is looked at. */
function stackOf(i) {
	const out = [];
	for (; i; i = tree.parent[i])
		out.push(marksOf(tree.fn[i]) + nameOf(tree.fn[i]));
	if (tree.sandwich)
		out.push(nameOf(focused));
	return (tree.depth[i] < 0 || tree.inverted ? out : out.reverse()).join("\n");
}

/* What can be done with a function; i: its node in the graph, -1 in the table. */
function menuItems(f, i) {
	const name = nameOf(f), exact = "=" + name, top = f === rootFn;
	return [
		i > 0 && ["Zoom to it", () => enter(i)],
		!top && ["Callers and callees", () => show("callers", canon[f])],
		!top && ["Only stacks with it", () => filter("focus", exact)],
		!top && ["Without stacks with it", () => filter("ignore", exact)],
		!top && ["Hide it: its time goes to its callers", () => filter("hide", exact)],
		["Search for it", () => search(name.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"))],
		hasSource(f) && ["Source lines", () => openSource(f)],
		["Copy name", () => copy(name)],
		i > 0 && ["Copy stack", () => copy(stackOf(i))],
	].filter(Boolean);
}

function closeMenu() {
	$("menu").hidden = true;
}

function openMenu(f, i, x, y) {
	const menu = $("menu");
	menu.replaceChildren(element("b", nameOf(f)), ...menuItems(f, i).map(([text, act]) => {
		const b = button(text, () => (closeMenu(), focusGraph(), act()));
		b.role = "menuitem";
		return b;
	}));
	tip.hidden = true;
	menu.hidden = false;
	menu.style.left = Math.max(8, Math.min(x, innerWidth - menu.offsetWidth - 8)) + "px";
	menu.style.top = Math.max(8, Math.min(y, innerHeight - menu.offsetHeight - 8)) + "px";
	menu.querySelector("button").focus({ preventScroll: true });
}

function menuByKey() {
	const i = candidate();
	if (i < 0)
		return;
	const r = rectOf(i);
	openMenu(tree.fn[i], i, r.x + 8, r.y + ROW);
}

function onMenu(e) {
	const i = nodeAt(e.clientX, e.clientY);
	if (i < 0)
		return;
	e.preventDefault();
	openMenu(tree.fn[i], i, e.clientX, e.clientY);
}

/* Up and down in the menu. */
function moveInMenu(e) {
	const step = { ArrowDown: 1, ArrowUp: -1 }[e.key], items = [...$("menu").querySelectorAll("button")];
	if (!step)
		return;
	items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
	e.preventDefault();
	e.stopPropagation();
}
