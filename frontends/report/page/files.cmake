# SPDX-License-Identifier: Apache-2.0
set(PAGE_html report.html)
set(PAGE_css report.css)
set(PAGE_js report.js)
