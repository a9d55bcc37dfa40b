# SPDX-License-Identifier: Apache-2.0
"""Gloo's all-reduce: reads `COUNT BYTES` per line on rank 0, and answers with COUNT times the median time of the slowest
rank, measured over at most 2,000 iterations. usage: all_reduce.py RANKS (the script starts its other ranks itself)
The processes are not bound to a core: Gloo's threads for I/O would wait for the thread that waits for them."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ranks = int(sys.argv[1])
rank = int(sys.argv[2]) if len(sys.argv) > 2 else 0
store = sys.argv[3] if rank else os.path.join(tempfile.mkdtemp(), "store")
others = [subprocess.Popen([sys.executable, __file__, str(ranks), str(r), store], stdin=subprocess.DEVNULL)
          for r in range(1, ranks)] if rank == 0 else []
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402 (the other ranks load it at the same time)
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
plan = torch.zeros(2, dtype=torch.float64)
data = torch.zeros(0)
if rank == 0:
    print("ready", flush=True)
while True:
    if rank == 0:
        line = sys.stdin.readline().split()
        plan[0], plan[1] = (float(line[0]), float(line[1])) if line else (0, 0)
    dist.broadcast(plan, 0)
    count, size = int(plan[0]), int(plan[1])
    if count == 0:
        break
    if data.numel() != size // 4:
        data = torch.zeros(size // 4)
    taken = []
    for i in range(min(count, 2000)):
        data.fill_(float(i % 8 + rank))
        dist.barrier()
        start = time.perf_counter_ns()
        dist.all_reduce(data)
        taken.append(time.perf_counter_ns() - start)
    slowest = torch.tensor([statistics.median(taken) * 1e-9], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if rank == 0:
        print(count * float(slowest[0]), flush=True)
dist.destroy_process_group()
for other in others:
    other.wait()
