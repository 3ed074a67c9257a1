-- As bench-vm: lua5.4 run.lua FILE.lua RUNS.
dofile(arg[1])
for _ = 1, tonumber(arg[2]) do
  collectgarbage()
  local began = os.clock()
  local result = main()
  print(string.format("%.6f %s", os.clock() - began, result))
end
