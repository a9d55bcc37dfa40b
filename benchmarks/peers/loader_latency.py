# SPDX-License-Identifier: Apache-2.0
"""Waiting times of PyTorch's DataLoader: loader_latency.py border|first WORKERS. The samples are 4,096 token sequences
of 1,024 uint16, the batches 256.

`border`: without persistent workers, the 99th percentile of the time from the request to the first batch of an epoch.
`first`: the mean time from the construction of a loader to its first batch.
"""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

from turns import answer_each

torch.set_num_threads(1)


class Tokens(Dataset):
    def __init__(self):
        self.samples = list(torch.zeros(4096, 1024, dtype=torch.uint16))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def first(dataset, workers):
    """Seconds until the first batch of a new loader; ending its workers is not counted."""
    begin = time.perf_counter()
    loader = DataLoader(dataset, batch_size=256, shuffle=True, drop_last=True, num_workers=workers)
    batches = iter(loader)
    next(batches)
    return time.perf_counter() - begin


def border(loader):
    """Seconds until the first batch of an epoch; then consumes the rest of the epoch."""
    begin = time.perf_counter()
    batches = iter(loader)
    next(batches)
    waited = time.perf_counter() - begin
    for _ in batches:
        pass
    return waited


def main(what, workers):
    dataset, workers = Tokens(), int(workers)
    loader = DataLoader(dataset, batch_size=256, shuffle=True, drop_last=True, num_workers=workers)

    def measure(count, _):
        waits = sorted(border(loader) if what == "border" else first(dataset, workers) for _ in range(count))
        return count * (waits[int(0.99 * len(waits))] if what == "border" else sum(waits) / len(waits)), {}

    answer_each(measure)


if __name__ == "__main__":
    main(*sys.argv[1:])
