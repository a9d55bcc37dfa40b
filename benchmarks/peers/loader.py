# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader: loader.py CASE BATCH WORKERS COLLATES [FILE], both lists with commas: tries each
setting, and prints the fastest to standard error. An iteration is a batch. A request with the word `processor` is answered
with processor time, including the workers', instead of wall-clock time.

The collates: `default` is the library's, with samples of varying length padded by the dataset; `written` is an optimized
one, written by hand. `before` and `after` are a user's own, before and after optimization: the first appends padded copies to
lists and stacks them, the second fills one array.
"""
import itertools
import multiprocessing
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from turns import answer_each

torch.set_num_threads(1)


def lengths(count, kind):
    """Returns the lengths of data/samples.hpp."""
    part = (torch.arange(count, dtype=torch.float64) * 0.6180339887498949) % 1.0
    if kind == "trajectories":
        return (80 + (part * 81).floor()).to(torch.int64)
    return (30 * 20**part).to(torch.int64)


class Held(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


class Clips(Dataset):
    """Records of one file, read one by one."""

    shape = (17, 256, 256)

    def __init__(self, path):
        self.path, self.bytes, self.file = path, int(numpy.prod(self.shape)), None
        with open(path, "rb") as file:
            self.count = file.seek(0, 2) // self.bytes

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)
        self.file.seek(i * self.bytes)
        out = torch.empty(self.shape, dtype=torch.uint8)
        self.file.readinto(memoryview(out.numpy()).cast("B"))
        return out


def pad_written(samples):
    size = torch.tensor([len(x) for x in samples], dtype=torch.int32)
    out = torch.zeros(len(samples), int(size.max()), *samples[0].shape[1:])
    for row, x in zip(out, samples):
        row[: len(x)] = x
    return out, size, torch.arange(out.shape[1])[None, :] < size[:, None]


def pad_default(samples):
    size = torch.tensor([len(x) for x in samples], dtype=torch.int32)
    out = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
    return out, size, torch.arange(out.shape[1])[None, :] < size[:, None]


def pad_before(samples):
    longest = max(len(x) for x in samples)
    values, masks = [], []
    for x in samples:
        missing = longest - len(x)
        values.append(numpy.concatenate([x.numpy(), numpy.zeros((missing, *x.shape[1:]), numpy.float32)]))
        masks.append(numpy.array([1] * len(x) + [0] * missing, numpy.bool_))
    return torch.tensor(numpy.stack(values)), torch.tensor(numpy.stack(masks))


def pad_after(samples):
    longest = max(len(x) for x in samples)
    values = numpy.zeros((len(samples), longest, *samples[0].shape[1:]), numpy.float32)
    masks = numpy.zeros((len(samples), longest), numpy.bool_)
    for i, x in enumerate(samples):
        values[i, : len(x)] = x.numpy()
        masks[i, : len(x)] = True
    return torch.from_numpy(values), torch.from_numpy(masks)


def stack_written(samples):
    out = torch.empty(len(samples), *samples[0].shape, dtype=samples[0].dtype)
    return torch.stack(samples, out=out)


def pairs_written(samples):
    return torch.tensor(samples)


def processor_seconds():
    """Returns the processor time of this process and its workers; a process id gives its clock (clock_getcpuclockid)."""
    workers = multiprocessing.active_children()
    return time.process_time() + sum(time.clock_gettime((~worker.pid << 3) | 2) for worker in workers)


class Forever:
    """A loader's batches, epoch after epoch."""

    def __init__(self, dataset, batch, workers, collate):
        self.batch = batch
        loader = DataLoader(
            dataset,
            batch_size=batch,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=2 if workers > 0 else None,
            collate_fn=collate,
        )

        def forever():
            while True:
                yield from loader

        self.batches = forever()

    def measure(self, count, words=()):
        """Returns the seconds of `count` batches, and counters of what they held."""
        items, size = 0, 0
        start, used = time.monotonic(), processor_seconds()
        for _ in range(count):
            size += bytes_of(next(self.batches))
            items += self.batch
        wall, processor = time.monotonic() - start, processor_seconds() - used
        return processor if "processor" in words else wall, {
            "items": items, "bytes": size, "processor_seconds": processor, "batch_bytes": size}

    def rate(self, duration):
        """Batches per second, of a few."""
        count = 1
        while (elapsed := self.measure(count)[0]) < duration:
            count *= 2
        return count / elapsed


def bytes_of(batch):
    """Returns the size of a batch's values, without lengths and masks."""
    values = batch if torch.is_tensor(batch) else batch[0]
    return values.numel() * values.element_size() if torch.is_tensor(values) else 0


def dataset_of(case, path):
    if case == "clips":
        return Clips(path), stack_written
    if case == "tokens":
        return Held(list(torch.zeros(4096, 1024, dtype=torch.uint16))), stack_written
    if case == "tiny":
        return Held([(float(i), 1.0) for i in range(102400)]), pairs_written
    channels = (64,) if case == "trajectories" else (133, 3)
    count = 3072 if case == "trajectories" else 512
    return Held([torch.ones(int(n), *channels) for n in lengths(count, case)]), pad_written


def answer_with_fastest(what, candidates):
    """Tries the loaders, pairs of (name, function that makes it), keeps the fastest, and answers requests with it."""
    best, most = None, 0.0
    for name, make in candidates:
        tried = make()
        tried.measure(2)
        rate = tried.rate(0.2)
        print(f"  {what}: PyTorch {name}: {rate * tried.batch:.0f} samples/s", file=sys.stderr)
        if rate > most:
            best, most = tried, rate
        del tried
    answer_each(best.measure)


def main(case, batch, workers, collates, path=None):
    dataset, written = dataset_of(case, path)
    padded = case in ("trajectories", "pose")
    functions = {"default": pad_default if padded else None, "written": written, "before": pad_before, "after": pad_after}
    answer_with_fastest(case, [
        (f"with {count} workers, collate {collate}",
         lambda count=count, collate=collate: Forever(dataset, int(batch), int(count), functions[collate]))
        for count, collate in itertools.product(workers.split(","), collates.split(","))])


if __name__ == "__main__":
    main(*sys.argv[1:])
