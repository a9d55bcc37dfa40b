#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# once.sh PROGRAM: runs a short case of each benchmark in PROGRAM once, without peers, and checks what PROGRAM refuses, and
# ratios.py.
set -euo pipefail
program=$1
ratios=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../benchmarks" && pwd)/ratios.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'once.sh: %s\n' "$1" >&2
  exit 1
}
# refuses TEXT FLAG…: the program fails and says TEXT.
refuses() {
  local text=$1 says
  shift
  if says=$("$program" "$@" 2>&1 >/dev/null </dev/null); then fail "accepted: $*"; fi
  [[ $says == *"$text"* ]] || fail "$* says '$says' instead of '$text'"
}

refuses 'Failed to match any benchmarks' --benchmark_filter=no_such_benchmark
refuses "cannot write $work/missing/out.json" --benchmark_out="$work/missing/out.json"
refuses 'unrecognized command-line flag' --benchmark_fliter=collate
LOCKSTEP_PEER_PYTHON=false refuses 'nothing was measured' --benchmark_filter=batch:8/threads:1/peer:pytorch

# Each kind of benchmark once; three repetitions are enough for ratios.
cases='collate/tokens/batch:64/.*(threads:.|roof)(/real_time)?$|all_reduce/bytes:16384/ranks:2/engine'
"$program" --benchmark_filter="$cases" --benchmark_min_time=1x --benchmark_repetitions=3 \
  --benchmark_enable_random_interleaving=true --benchmark_out="$work/out.json" --benchmark_format=json \
  </dev/null >"$work/shown.json" || fail 'a benchmark failed'
python3 - "$work" "$(nproc)" <<'END'
import json, sys
shown, out = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("shown", "out"))
assert shown["benchmarks"] and len(shown["benchmarks"]) == len(out["benchmarks"]), "the file differs from what is shown"
context = out["context"]
for key in ("processor", "compiler", "pytorch", "mpi", "blas", "round_trip_of_a_cache_line"):
    assert context.get(key), f"the context lacks {key}"
runs = [run for run in out["benchmarks"] if run["run_type"] == "iteration" and not run.get("error_occurred")]
collates = [run for run in runs if run["name"].startswith("collate/")]
assert all(run["bytes_per_second"] > 0 and run["items_per_second"] > 0 for run in collates) and len(collates) == 12, collates
sums = [run for run in runs if run["name"].startswith("all_reduce/")]
assert len(sums) == (12 if int(sys.argv[2]) > 1 else 0), sums
assert all(0.99 < run["busbw"] / run["algbw"] < 1.01 for run in sums), "busbw is algbw with two ranks"
END

# A short case of each other benchmark, except layer_cost, which needs valgrind.
cases='file_locks/unlocked/processes:1|latency/first_batch|loader/tokens|torch_data/tiny|video_clips/.*/files:12'
cases+='|trajectory_windows/.*/batch:1024|attention/forward|convolution/forward/3x3/depthwise|embedding/forward/ids:zipf'
cases+='|touched_rows/backward/ids:uniform|gemm/weight_gradient/float32/.*/outputs:128|cross_entropy/.*/classes:4|group_norm/forward/rows:32'
cases+='|layer_norm/forward|adamw/parameters:100000|start/processes:2|ctc/.*/rows:16|gru/.*:varied/.*/width:64$|row_exchange/ranks:2'
cases+='|reproducible/ragged/shards:4|two_ranks/width:32/padded/manual'
cases+='|activity_step/mode:flatten|step/width:128/ragged$|trajectory_step/ragged$|gpt_step/small$|pose_step/.*/batch:1|video_step/.*/batch:1'
cases+='|activation_memory/width:128/padded/no_dropout|text_start/open|order/index|order/resume|order/padding/token_budget'
cases+='|prediction/ranks:2/width:32/padded/batch:4'
grep -q '^pose_files/' <<<"$("$program" --benchmark_list_tests </dev/null 2>/dev/null)" && cases+='|pose_files/'
LOCKSTEP_PEER_PYTHON=false "$program" --benchmark_filter="^($cases)" --benchmark_min_time=1x --benchmark_out="$work/all.json" \
  --benchmark_out_format=json </dev/null >"$work/shown.txt" 2>&1 || fail "a benchmark failed: $(tail -n 5 "$work/shown.txt")"
python3 - "$work/all.json" "$cases" <<'END' || fail 'a benchmark measured nothing'
import json, re, sys
measured = [run["name"] for run in json.load(open(sys.argv[1]))["benchmarks"] if not run.get("error_occurred")]
missing = [case for case in sys.argv[2].split("|") if not any(re.match(case.rstrip("$"), name) for name in measured)]
assert not missing, missing
END

# Ratios of known runs: a disturbed run and one of another state of the machine are dropped.
cat >"$work/known.json" <<'END'
{"context": {}, "benchmarks": [
END
row() { # NAME TIME STARTED ROUND_TRIP DISTURBED
  printf '{"name": "%s", "run_type": "iteration", "iterations": 9, "real_time": %s, "cpu_time": 1, "time_unit": "us",
    "started_s": %s, "round_trip_ns": %s, "disturbed": %s},\n' "$@"
}
{
  for at in 0 2 4 6; do row sum/engine:x/manual_time $((10 + at)) "$at" 100 0; done
  row sum/engine:x/manual_time 1000 8 100 1
  for at in 1 3 5; do row sum/peer:y/manual_time $((40 + 4 * at)) "$at" 100 0; done
  row sum/peer:y/manual_time 7777 0.1 400 0
  row sum/peer:z/manual_time 5 1 100 0
  printf '{"name": "sum/peer:w", "run_type": "iteration", "error_occurred": true, "error_message": "skipped: none"}]}\n'
} >>"$work/known.json"
says=$(python3 "$ratios" --csv "$work/known.csv" "$work/known.json")
# 44/10, 52/12 and 60/14: each run is in one pair at most, and the last one has no partner left.
[[ $(<"$work/known.csv") == 'benchmark,case,peer,ratio,low,high
known,sum/engine:x,y,4.333,4.310,4.367' ]] || fail "ratios: $(<"$work/known.csv")"
[[ $says == *'sum/engine:x against z: no ratio: fewer than 3 pairs'* && $says == *'skipped: none'* ]] || fail "ratios.py says $says"
if python3 "$ratios" "$work/missing.json" >/dev/null 2>&1; then fail 'ratios.py accepted a file that is not there'; fi
