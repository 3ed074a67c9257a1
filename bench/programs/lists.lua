-- A sieve: a table that grows and is changed at many places.
function main()
  local size = 200000
  local sieve = {}
  for i = 0, size - 1 do
    sieve[i + 1] = i > 1
  end
  local count = 0
  for i = 2, size - 1 do
    if sieve[i + 1] then
      count = count + 1
      for j = i * i, size - 1, i do
        sieve[j + 1] = false
      end
    end
  end
  return count
end
