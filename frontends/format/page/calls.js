/* SPDX-License-Identifier: Apache-2.0 */
const callTime = (ns) => scaled(ns, 1000, ["ns", "\u00b5s", "ms", "s"]);

/* The longest calls: how long, when, which thread, with what, and what they waited for. */
function showLongest() {
	const list = data.longest, box = $("longest");
	if (box.hidden = !list)
		return;
	box.firstChild.textContent = "the " + list.length + " longest calls";
	for (const [ns, at, thread, call, ...waits] of list) {
		const reasons = [];
		for (let i = 0; i < waits.length; i += 2)
			reasons.push(waits[i] + (waits[i + 1] ? " " + callTime(waits[i + 1]) : ""));
		const cells = [callTime(ns), "at " + (at / 1e9).toFixed(3) + " s", thread, call, reasons.join(", ")];
		box.lastChild.append(element("tr", "", ...cells.map((text) => element("td", text))));
	}
}

/* A column for each span of time, along a logarithmic scale with a mark at each decade. */
function showHistogram(box, title, list) {
	const from = list[0][0] || 1, to = list.at(-1)[1], most = Math.max(...list.map((b) => b[2])), sum = list.reduce((n, b) => n + b[2], 0);
	const say = (n) => n.toLocaleString("en-US") + " calls";
	const place = (ns) => 100 * Math.log((ns || 1) / from) / Math.log(to / from);
	const put = (tag, text, a, b, n) => {
		const e = box.lastChild.appendChild(element(tag, text));
		e.style.left = place(a) + "%";
		if (!n)
			return;
		e.style.width = place(b) - place(a) + "%";
		e.style.height = 64 * n / most + 1 + "px";
		e.title = callTime(a) + " to " + callTime(b) + ": " + say(n) + ", " + percent(n, sum);
	};
	box.append(title + say(sum) + " by time", element("div", ""));
	list.forEach((b) => put("i", "", ...b));
	for (let t = 10 ** Math.ceil(Math.log10(from)); t < to / 2; t *= 10)
		put("span", callTime(t), t);
}

/* How long calls took, of each function. */
function showCalls() {
	showLongest();
	const all = data.histograms, box = $("calls");
	if (box.hidden = !all)
		return;
	for (const [name, ...list] of all)
		showHistogram(box, all.length > 1 ? name + ": " : "", list);
}
