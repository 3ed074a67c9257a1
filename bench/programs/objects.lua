-- Members of tables by name, and tables in a table.
function main()
  local counts = {}
  for i = 0, 199999 do
    local name = "k" .. i % 1000
    counts[name] = (counts[name] or 0) + i
  end
  local rows = {}
  for i = 0, 19999 do
    rows[#rows + 1] = {number = i, name = "row " .. i}
  end
  local sum = 0
  for _, row in ipairs(rows) do
    sum = sum + row.number + #row.name
  end
  for _, n in pairs(counts) do
    sum = sum + n
  end
  return sum
end
