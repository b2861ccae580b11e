-- SPDX-License-Identifier: Apache-2.0
-- Niklas Frykholm's Markdown, on a text with all that it knows.
arg = nil -- else the module takes itself for the program
local markdown = require("markdown")
local text = ("# Title\n\nSome *words* in **a paragraph** with `code` and [a link](http://localhost/ \"t\").\n\n* one\n* two\n\n> quoted\n\n    code\n\n"):rep(20)
while true do markdown(text) end
