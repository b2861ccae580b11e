/* SPDX-License-Identifier: Apache-2.0 */
const requestRow = (tag, ...cells) => element("tr", "", ...cells.map((c) => typeof c == "string" ? element(tag, c) : element(tag, "", c)));

/* A strip of what a request's time was. */
function requestStrip(parts) {
	const sum = parts.reduce((n, ns) => n + ns, 0) || 1, strip = element("span", "");
	strip.className = "strip";
	parts.forEach((ns, i) => {
		const part = element("i", "");
		part.className = "part" + i;
		part.style.width = 100 * ns / sum + "%";
		part.title = data.requests.times[i] + " " + callTime(ns);
		strip.append(part);
	});
	return strip;
}

/* The head of a column of times, with its colour in the strips. */
function requestTime(name, i) {
	const head = element("span", ""), key = element("i", "");
	key.className = "key part" + i;
	head.append(key, name);
	return head;
}

/* The table of routes. */
function showRoutes(table) {
	const { times, routes } = data.requests;
	table.append(requestRow("th", "requests", "errors", "p50", "p95", "p99", "max", ...times.map(requestTime), "", "route"));
	for (const [route, n, errors, p50, p95, p99, max, parts] of routes)
		table.append(requestRow("td", n.toLocaleString("en-US"), errors.toLocaleString("en-US"), ...[p50, p95, p99, max, ...parts.map((ns) => ns / n)].map(callTime), requestStrip(parts), route));
}

/* The slowest: what their time was, and their stacks. */
function showSlowest(table) {
	for (const [request, status, ns, pid, parts, stacks, phases, upstreams] of data.requests.slowest) {
		const box = element("details", "", element("summary", request + (status ? "  " + status : "")));
		const steps = phases.filter((p) => p[1] >= ns / 200).map(([phase, part]) => phase + " " + callTime(part));
		if (steps.length)
			box.append(element("p", "phases: " + steps.join(", ")));
		for (const [peer, answer, ms] of upstreams)
			box.append(element("p", "upstream " + peer + (answer ? "  " + answer : "") + (ms >= 0 ? "  " + ms + " ms" : "")));
		for (const [part, reason, frames] of stacks) {
			const names = (frames || "[" + reason + "]").split("; ");
			box.append(element("p", callTime(part) + "  " + names[0]), element("ol", "", ...names.slice(1).map((name) => element("li", name))));
		}
		const said = parts.map((t, i) => t >= ns / 200 ? data.requests.times[i] + " " + callTime(t) : "").filter(Boolean).join(", ");
		table.append(requestRow("td", callTime(ns), requestStrip(parts), said, "process " + pid, box));
	}
}

/* What the picture of stacks lacks. */
function requestsWithoutStack() {
	const { routes, times } = data.requests, sum = (of) => routes.reduce((ns, r) => ns + of(r[7]), 0);
	const queue = sum((parts) => parts[1]), all = sum((parts) => parts.reduce((n, ns) => n + ns, 0));
	return queue > all / 100 ? "; " + callTime(queue) + " in the " + times[1] + " for a CPU have no stack" : "";
}

function showRequests() {
	const box = $("requests");
	if (box.hidden = !data.requests)
		return;
	const [summary, routes, title, slowest] = box.children, n = data.requests.routes.reduce((sum, r) => sum + r[1], 0);
	summary.textContent = n.toLocaleString("en-US") + " requests by route, times of one in the mean";
	showRoutes(routes);
	title.textContent = data.requests.slowest.length ? "the " + data.requests.slowest.length + " slowest, with their stacks" + requestsWithoutStack() : "none was slow";
	showSlowest(slowest);
}
