# SPDX-License-Identifier: Apache-2.0
"""Windows of recorded episodes through PyTorch's DataLoader: trajectory_windows.py FOLDER BATCH WORKERS COLLATE STEPS CONTEXT.
An iteration is a batch.

Both collates return returns, states and actions of a previous and a current region; the number of steps varies between
samples. `before` is a user's own: in a loop over the samples each region's tensors are stacked, permuted, padded by cat, and
appended to lists, which are stacked. `after` fills padded arrays, one row per sample.
"""
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from turns import take_turns

torch.set_num_threads(1)
WIDTH = 17


class Windows(Dataset):
    """Mapped arrays; a window begins anywhere in its episode."""

    def __init__(self, folder, steps, context):
        self.arrays = [numpy.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("observations", "actions", "rewards")]
        lengths = numpy.load(f"{folder}/episode_lengths.npy")
        self.ends = numpy.cumsum(lengths)
        self.begins = self.ends - lengths
        self.episode = numpy.repeat(numpy.arange(len(lengths)), (lengths + steps - 1) // steps)
        self.steps, self.context = steps, context

    def __len__(self):
        return len(self.episode)

    def __getitem__(self, i):
        episode = self.episode[i]
        first, last = int(self.begins[episode]), int(self.ends[episode])
        begin = int(torch.randint(first - self.steps + 1, last, ()))
        begin, end = max(first, begin), min(last, begin + self.steps)
        previous = max(first, begin - self.context)
        states, actions, rewards = self.arrays
        returns = numpy.cumsum(rewards[previous:last][::-1])[::-1][: end - previous] / 400
        cut = begin - previous
        parts = returns.astype(numpy.float32), (states[previous:end] - 0.1) * 1.4, actions[previous:end]
        return [part[:cut] for part in parts], [part[cut:] for part in parts]


def pad(tensor, length):
    missing = torch.zeros(length - len(tensor), *tensor.shape[1:], dtype=tensor.dtype)
    return torch.cat([tensor, missing])


def before(samples):
    batch = []
    for region in (0, 1):
        longest = max(len(sample[region][0]) for sample in samples)
        values, choices, masks = [], [], []
        for sample in samples:
            returns, states, actions = (torch.tensor(part) for part in sample[region])
            both = torch.stack([*states.permute(1, 0), returns]).permute(1, 0)
            values.append(pad(both, longest))
            choices.append(pad(actions, longest))
            masks.append(pad(torch.ones(len(actions), dtype=torch.bool), longest))
        values = torch.stack(values)
        batch.append((values[:, :, WIDTH:], values[:, :, :WIDTH], torch.stack(choices), torch.stack(masks)))
    return tuple(torch.cat(parts, 1) for parts in zip(*batch))


def after(samples):
    rows = len(samples)
    before_current = max(len(previous[0]) for previous, _ in samples)
    longest = before_current + max(len(current[0]) for _, current in samples)
    returns = numpy.zeros((rows, longest, 1), numpy.float32)
    states = numpy.zeros((rows, longest, WIDTH), numpy.float32)
    actions = numpy.zeros((rows, longest), numpy.int64)
    mask = numpy.zeros((rows, longest), numpy.bool_)
    for row, regions in enumerate(samples):
        for first, (r, s, a) in zip((0, before_current), regions):
            place = slice(first, first + len(r))
            returns[row, place, 0], states[row, place], actions[row, place], mask[row, place] = r, s, a, True
    return tuple(torch.from_numpy(part) for part in (returns, states, actions, mask))


def main(folder, batch, workers, collate, steps, context):
    loader = DataLoader(
        Windows(folder, int(steps), int(context)),
        batch_size=int(batch),
        shuffle=True,
        drop_last=True,
        num_workers=int(workers),
        persistent_workers=True,
        collate_fn={"before": before, "after": after}[collate],
    )

    def forever():
        while True:
            yield from loader

    batches = forever()
    next(batches)
    take_turns(lambda: next(batches), per_call=int(batch), clock=time.monotonic)


if __name__ == "__main__":
    main(*sys.argv[1:])
