/* SPDX-License-Identifier: Apache-2.0 */
/* How long calls took: a column for each span of time, along a logarithmic scale with a mark at each decade. */
function showCalls() {
	const list = data.histogram, box = $("calls");
	if (box.hidden = !list)
		return;
	const from = list[0][0] || 1, to = list.at(-1)[1], most = Math.max(...list.map((b) => b[2])), sum = list.reduce((n, b) => n + b[2], 0);
	const time = (ns) => scaled(ns, 1000, ["ns", "\u00b5s", "ms", "s"]), say = (n) => n.toLocaleString("en-US") + " calls";
	const place = (ns) => 100 * Math.log((ns || 1) / from) / Math.log(to / from);
	const put = (tag, text, a, b, n) => {
		const e = box.lastChild.appendChild(element(tag, text));
		e.style.left = place(a) + "%";
		if (!n)
			return;
		e.style.width = place(b) - place(a) + "%";
		e.style.height = 64 * n / most + 1 + "px";
		e.title = time(a) + " to " + time(b) + ": " + say(n) + ", " + percent(n, sum);
	};
	box.append(say(sum) + " by time", element("div", ""));
	list.forEach((b) => put("i", "", ...b));
	for (let t = 10 ** Math.ceil(Math.log10(from)); t < to / 2; t *= 10)
		put("span", time(t), t);
}
