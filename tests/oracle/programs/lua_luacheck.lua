-- SPDX-License-Identifier: Apache-2.0
-- luacheck on its own sources.
local luacheck, lfs = require("luacheck"), require("lfs")
local directory, files = debug.getinfo(luacheck.check_files, "S").source:match("^@(.*)/"), {}
for name in lfs.dir(directory) do
	if name:match("%.lua$") then files[#files + 1] = directory .. "/" .. name end
end
while true do luacheck.check_files(files) end
