-- A text that grows, is walked through by its characters, and is searched.
function main()
  local text = ""
  for i = 0, 19999 do
    text = text .. i % 10 .. ","
  end
  local commas = 0
  for i = 1, #text do
    if text:sub(i, i) == "," then
      commas = commas + 1
    end
  end
  local found = 0
  local at = text:find("7,8", 1, true)
  while at do
    found = found + 1
    at = text:find("7,8", at + 1, true)
  end
  return commas + found + #(text:gsub("9,", "nine"))
end
