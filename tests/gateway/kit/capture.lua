-- Loaded before the gateway's own files: keeps what body.lua registers, for read_bodies.lua.
parsers = {}
local converters, actions = core.register_converters, core.register_action
core.register_converters = function(name, run) parsers[name .. ":converter"] = run; return converters(name, run) end
core.register_action = function(name, places, run, count) parsers[name .. ":action"] = run; return actions(name, places, run, count) end
