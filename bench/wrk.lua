-- Posts the lines of the file that BENCH_BODIES names, in turn, and prints what came of it as one line of JSON.
local requests, last = {}, 0

function init()
  local headers = { ["content-type"] = "application/json", ["accept"] = "application/json",
    ["accept-encoding"] = os.getenv("BENCH_ACCEPTS") }
  for body in io.lines(os.getenv("BENCH_BODIES")) do
    requests[#requests + 1] = wrk.format("POST", nil, headers, body)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency)
  local wrong = summary.errors
  local failed = wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout
  print(string.format('TOLD {"requests": %d, "seconds": %f, "failed": %d, "p50": %f, "p99": %f}', summary.requests,
    summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
