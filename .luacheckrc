-- SPDX-License-Identifier: MIT
std = "lua54"
max_line_length = 120
files["tests/lua/*_test.lua"] = { std = "lua54+busted", ignore = { "122/io" } }
-- Declarations for editors: empty bodies, classes that only the comments use.
files["bindings-lua/library"] = { ignore = { "212", "241" } }
files[".busted"] = { std = "lua54" }
