# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the benchmark of two ranks: the text classifier under DistributedDataParallel over Gloo, two processes of
one thread each. Reads a number of steps per line on rank 0, which starts the other, and answers with their seconds and samples."""
import os
import subprocess
import sys
import tempfile
import time
import warnings

ranks = 2
rank = int(os.environ.get("RANK", "0"))
store = os.environ.get("STORE") or os.path.join(tempfile.mkdtemp(), "store")
others = [subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.DEVNULL,
                           env={**os.environ, "RANK": str(r), "STORE": store})
          for r in range(1, ranks)] if rank == 0 else []
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402 (the others load it at the same time)
import torch.distributed as dist  # noqa: E402
from text_classification import arguments, training  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from turns import answer_each  # noqa: E402

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
options = arguments()
warnings.filterwarnings("ignore", category=FutureWarning)  # a newer name, missing in older versions
step = training(options, lambda model: DistributedDataParallel(
    model, broadcast_buffers=False, gradient_as_bucket_view=True, static_graph=True))
for _ in range(2):  # setup in the first steps
    step()
plan = torch.zeros(1, dtype=torch.float64)


def measure(count, _):
    plan[0] = count
    dist.broadcast(plan, 0)
    begin = time.perf_counter()
    for _ in range(int(plan[0])):
        step()
    return time.perf_counter() - begin, {"items": count * ranks * options.batch}


if rank == 0:
    answer_each(measure)
    plan[0] = 0
    dist.broadcast(plan, 0)
else:
    while measure(0, None) and plan[0] > 0:
        pass
dist.destroy_process_group()
for other in others:
    other.wait()
