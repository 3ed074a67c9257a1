-- Whole numbers in loops within loops.
function main()
  local sum = 0
  local i = 1
  while i <= 3000 do
    local j = 1
    while j <= 1000 do
      sum = sum + i * j % 7
      j = j + 1
    end
    i = i + 1
  end
  return sum
end
