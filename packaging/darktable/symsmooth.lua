-- A target of darktable's export: what was exported is denoised in place by the program symsmooth.
-- Copy it into ~/.config/darktable/lua, add `require "symsmooth"` to ~/.config/darktable/luarc, restart.
-- Export as 16-bit TIFF, with noise reduction and sharpening switched off.
-- SPDX-License-Identifier: BSD-3-Clause

local dt = require "darktable"

local function quoted(name)
  return "'" .. name:gsub("'", "'\\''") .. "'"
end

local function store(storage, image, format, filename, number, total, high_quality, extra)
  local target = image.path .. "/" .. filename:match("[^/]+$"):gsub("(%.%w+)$", "-denoised%1")
  local command = "symsmooth denoise " .. quoted(filename) .. " -o " .. quoted(target) .. " --overwrite --quiet"
  if os.execute(command) then
    dt.print("symsmooth: " .. number .. " of " .. total .. " done")
    dt.database.import(target)
  else
    dt.print("symsmooth could not denoise " .. filename .. "; is it on the PATH?")
  end
  os.remove(filename)
end

dt.register_storage("symsmooth", "denoise (symsmooth)", store)
