# SPDX-License-Identifier: Apache-2.0
"""Gloo's all-reduce: reads seconds per line on rank 0 and answers with one over the median time of the slowest rank.
usage: all_reduce.py RANKS BYTES (the script starts its other ranks itself)"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ranks, size = int(sys.argv[1]), int(sys.argv[2])
rank = int(sys.argv[3]) if len(sys.argv) > 3 else 0
places = sorted(os.sched_getaffinity(0))
store = sys.argv[4] if rank else os.path.join(tempfile.mkdtemp(), "store")
others = [subprocess.Popen([sys.executable, __file__, str(ranks), str(size), str(r), store], stdin=subprocess.DEVNULL)
          for r in range(1, ranks)] if rank == 0 else []
os.sched_setaffinity(0, {places[rank % len(places)]})
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402 (it starts threads, which inherit the processor)
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
data = torch.zeros(size // 4)
plan = torch.zeros(1, dtype=torch.float64)
if rank == 0:
    print("ready", flush=True)
estimate = 1e-2
while True:
    if rank == 0:
        line = sys.stdin.readline()
        plan[0] = float(line) if line else 0
    dist.broadcast(plan, 0)
    if plan[0] == 0:
        break
    times = int(min(max(float(plan[0]) / estimate, 5), 20000))
    taken, begin = [], time.perf_counter()
    for i in range(times):
        data.fill_(float(i % 8 + rank))
        dist.barrier()
        start = time.perf_counter_ns()
        dist.all_reduce(data)
        taken.append(time.perf_counter_ns() - start)
    plan[0] = (time.perf_counter() - begin) / times
    dist.broadcast(plan, 0)
    estimate = float(plan[0])
    plan[0] = statistics.median(taken) * 1e-9
    dist.all_reduce(plan, dist.ReduceOp.MAX)
    if rank == 0:
        print(1 / float(plan[0]), flush=True)
dist.destroy_process_group()
for other in others:
    other.wait()
