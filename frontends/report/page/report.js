/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph opens in full as the page that yrt writes by itself, made of the parts that this file carries. */
"use strict";
const part = (id) => JSON.parse(document.getElementById(id).textContent);

function openGraph(view, query) {
	const page = part("page"), data = document.getElementById("view-" + view).textContent;
	const url = URL.createObjectURL(new Blob([page[0] + data + page[1]], { type: "text/html" }));
	const look = document.documentElement.dataset.theme;
	window.open(url + "#" + new URLSearchParams({ q: query, ...(look ? { theme: look } : {}) }), "_blank");
}

document.addEventListener("click", (event) => {
	const button = event.target.closest("button");
	if (!button)
		return;
	if (button.dataset.view)
		openGraph(button.dataset.view, button.dataset.query);
	if (button.dataset.copy)
		navigator.clipboard?.writeText(button.dataset.copy).then(() => (button.textContent = "copied"));
	if (button.id === "theme") {
		const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
		root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
	}
});
