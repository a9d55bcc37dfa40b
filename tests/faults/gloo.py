# SPDX-License-Identifier: Apache-2.0
"""A reference for faults.sh: ranks of PyTorch over Gloo that run all-reduces forever, and report their errors after a rank is lost."""
import os
import sys
import time

import torch
import torch.distributed as dist

rank = os.environ["RANK"]
folder = os.environ["FAULTS_FOLDER"]
with open(f"{folder}/{rank}.new", "w") as file:
    file.write(f"{os.getpid()}\n")
os.rename(f"{folder}/{rank}.new", f"{folder}/{rank}")
dist.init_process_group("gloo")
data = torch.ones(1 << 14)
step = 0
try:
    while True:
        dist.all_reduce(data)
        data.fill_(1)
        if step == 0 and rank == "0":
            print(f"{time.time_ns()} all ranks have added up", file=sys.stderr, flush=True)
        step += 1
except RuntimeError as error:
    text = str(error).replace("\n", " ")
    print(f"{time.time_ns()} survivor {rank}: {text}", file=sys.stderr, flush=True)
    sys.exit(1)
