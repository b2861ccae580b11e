-- SPDX-License-Identifier: Apache-2.0
-- Neovim's API and its functions in C, by vim.api and vim.fn.
local function fill(n)
	local lines = {}
	for i = 1, n do lines[i] = ("line %d: %s"):format(i, ("word "):rep(i % 9)) end
	vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
end
local function look(n)
	local found = 0
	for i = 1, n do
		found = found + #vim.fn.getline(i) + vim.fn.indent(i) + vim.fn.foldclosed(i)
		if vim.fn.match(vim.fn.getline(i), "wo[rx]d") >= 0 then found = found + 1 end
	end
	return found
end
while true do
	fill(200)
	look(200)
	vim.split(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"), "\n", {plain = true})
	vim.tbl_map(string.upper, vim.fn.range(1, 20))
end
