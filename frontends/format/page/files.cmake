# SPDX-License-Identifier: Apache-2.0
set(PAGE_html page.html)
set(PAGE_css page.css)
set(PAGE_js tree.js state.js draw.js trunk.js lens.js panels.js filter.js table.js source.js time.js calls.js requests.js export.js input.js)
