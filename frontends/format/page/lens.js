/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl and the wheel: a part of what is zoomed to, as wide as the graph. The wheel sideways moves it. */
const LENS_STEP = 0.0022, LENS_LEAST = 1e-6;
let lens = null; /* [a, b]: samples, as span() */

const nodeSpan = () => [tree.start[zoom], tree.start[zoom] + (tree.total[zoom] || 1)];

function setLens(a, b) {
	const [low, high] = nodeSpan(), size = Math.min(high - low, Math.max((high - low) * LENS_LEAST, b - a));
	const begin = Math.max(low, Math.min(high - size, a));
	lens = size >= (high - low) * 0.9999 ? null : [begin, begin + size];
	movedAt = -Infinity;
	relayout();
}

function onWheel(e) {
	const zooms = e.ctrlKey || e.metaKey, sideways = e.deltaX || (e.shiftKey ? e.deltaY : 0);
	if (!zooms && !(lens && sideways))
		return;
	e.preventDefault();
	const [a, b] = span(), line = e.deltaMode ? 30 : 1;
	if (!zooms) {
		const by = (sideways * line * (b - a)) / width;
		return setLens(a + by, b + by);
	}
	const at = a + ((e.clientX - canvas.getBoundingClientRect().left) / width) * (b - a);
	const k = Math.exp(Math.max(-1, Math.min(1, e.deltaY * line * LENS_STEP)));
	setLens(at - (at - a) * k, at + (b - at) * k);
}
