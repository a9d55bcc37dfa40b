# SPDX-License-Identifier: Apache-2.0
"""Training steps of the five stories in PyTorch, from files to updated parameters: story_steps.py STORY KIND FOLDER --steps N.
The models are those of the accuracy peers, the files those that the trainer of the story reads, on one thread.

The kind `before` loads as the teams did: a Dataset that makes tensors of each sample in worker processes, and a collate that
appends and stacks. `after` loads as well as PyTorch can: no worker processes where they cost more than they save, samples kept
as numbers or read without copies, one array filled per batch, and length buckets where padding costs more."""
import argparse
import collections
import math
import types

import numpy
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

import kernels  # noqa: F401: one thread, and freed memory reused


class Held(Dataset):
    def __init__(self, samples, make=lambda sample: sample):
        self.samples, self.make = samples, make

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.make(self.samples[i])


def forever(dataset, batch, workers=0, collate=None, batches=None):
    given = {"batch_sampler": batches} if batches else {"batch_size": batch, "shuffle": True, "drop_last": True}
    loader = DataLoader(dataset, num_workers=workers, persistent_workers=workers > 0, collate_fn=collate, **given)
    while True:
        yield from loader


class Buckets:
    """Batches of samples of similar length."""

    def __init__(self, lengths, batch):
        self.order, self.batch = sorted(range(len(lengths)), key=lengths.__getitem__), batch

    def __iter__(self):
        for at in torch.randperm(len(self.order) // self.batch).tolist():
            yield self.order[at * self.batch : (at + 1) * self.batch]


def text(o):
    from text_accuracy import batches_of, rows_of, tokens_of
    from text_classification import Classifier

    rows = rows_of(o.folder + "/train.csv")
    counts = collections.Counter(token for row, _ in rows for token in tokens_of(row))
    kept = sorted((-count, token) for token, count in counts.items() if count >= 2)[:19998]
    numbers = {token: number + 2 for number, (_, token) in enumerate(kept)}
    encode = lambda row: ([numbers.get(token, 1) for token in tokens_of(row)][:128] or [1])
    model = Classifier(types.SimpleNamespace(vocabulary=len(numbers) + 2, width=128, layers=2, heads=4, feed_forward=256,
                                             length=128, classes=4, dropout=0.1, norm_first=False))

    def padded(row):
        ids = encode(row[0])
        return torch.tensor(ids + [0] * (128 - len(ids))), torch.tensor([len(ids)]), torch.tensor(row[1])

    if o.kind == "before":
        batches = forever(Held(rows, padded), 32, 2)
    else:
        encoded = [(encode(row), label) for row, label in rows]
        batches = forever(Held(encoded), 32, 0, lambda part: next(iter(batches_of(part, 32))))
    return model, lambda batch: F.cross_entropy(model(batch[0], batch[1]), batch[2]), batches


def motion(o):
    import activity_classification

    windows, labels = activity_classification.read(o.folder, "train")
    model = activity_classification.MODES["conv"](types.SimpleNamespace(dropout=0.1))
    if o.kind == "before":
        arrays = list(zip(windows.numpy(), labels.tolist()))
        batches = forever(Held(arrays, lambda s: (torch.tensor(s[0], dtype=torch.float32), torch.tensor(s[1]))), 32, 2)
    else:
        batches = ((windows[i], labels[i]) for i in iter(lambda: torch.randint(len(labels), (32,)), None))
    return model, lambda batch: F.cross_entropy(model(batch[0]), batch[1]), batches


def pose(o):
    import os

    import pose_accuracy
    from pose_files import Poses, append_and_stack, fill

    class Texts(Poses):
        """Poses, texts by the numbers of their words, and both lengths, which the masks need."""

        def __getitem__(self, i):
            frames, tokens = super().__getitem__(i)[0], torch.tensor(self.numbers[i])
            return frames, tokens, torch.ones(len(frames)), torch.ones(len(tokens))

    data = Texts(o.folder, o.kind)
    words = sorted({word for _, row in data.rows for word in row.split()})
    number = {word: i + 3 for i, word in enumerate(words)}
    data.numbers = [[number[word] for word in row.split()] for _, row in data.rows]
    coordinates, vocabulary = data[0][0].shape[1], len(words) + 3
    model = pose_accuracy.PoseToText(types.SimpleNamespace(width=128, layers=2, heads=4, inner=256, dropout=0.1),
                                     coordinates, vocabulary)
    if o.kind == "before":
        batches = forever(data, 16, 4, append_and_stack)
    else:
        lengths = [os.path.getsize(path) for path, _ in data.rows]
        batches = forever(data, 16, 0, fill, Buckets(lengths, 16))

    def loss(batch):
        frames, tokens, frame_counts, token_counts = batch
        size, count = frame_counts.sum(1).long(), token_counts.sum(1).long() + 1
        begin = F.pad(tokens, (1, 0), value=pose_accuracy.BEGIN)
        following = F.pad(tokens, (0, 1)).scatter(1, count[:, None] - 1, pose_accuracy.END)
        following = following.masked_fill(torch.arange(following.shape[1])[None] >= count[:, None], -100)
        found = model(frames, pose_accuracy.masked(size), begin, pose_accuracy.masked(count))
        return F.cross_entropy(found.flatten(0, 1), following.flatten(), label_smoothing=0.1)

    return model, loss, batches


def robot(o):
    import trajectory_windows
    from trajectory_transformer import Model

    model = Model(types.SimpleNamespace(actions=18, steps=30, width=128, layers=3, heads=4, feed_forward=512, dropout=0.1,
                                        loop=o.kind == "before"))
    collate = {"before": trajectory_windows.before, "after": trajectory_windows.after}[o.kind]
    batches = forever(trajectory_windows.Windows(o.folder, 20, 10), 32, 4 if o.kind == "before" else 0, collate)

    def loss(batch):
        returns, states, actions, real = batch
        order = (~real).to(torch.uint8).argsort(dim=1, stable=True)  # regions are padded apart
        returns, states = returns.gather(1, order[..., None]), states.gather(1, order[..., None].expand_as(states))
        actions, real = actions.gather(1, order), real.gather(1, order)
        longest = int(real.sum(1).max())
        returns, states, actions, real = (x[:, :longest] for x in (returns, states, actions, real))
        tokens = 3 * longest
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril() & real.repeat_interleave(3, 1)[:, None, None]
        found = model(returns.float(), states.float(), actions.long(), real.sum(1), mask)
        return F.cross_entropy(found.flatten(0, 1), actions.long().masked_fill(~real, -100).flatten())

    return model, loss, batches


def video(o):
    import csv

    from video_accuracy import floats, model_for
    from video_clips import Clips, stack_bytes

    data = Clips(o.folder, o.kind)
    with open(o.folder + "/index.csv", newline="") as file:
        names = [row["label"] for row in csv.DictReader(file)]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}

    class Labelled(Dataset):
        def __len__(self):
            return len(data)

        def __getitem__(self, i):
            return data[i], torch.tensor(numbers[names[i]])

    shape = data[0].shape[-2:]
    model = model_for(*shape, len(numbers)).to(memory_format=torch.channels_last_3d)
    if o.kind == "before":
        batches, prepare = forever(Labelled(), 16, 2), lambda clips: clips
    else:
        stack = lambda part: (stack_bytes([clip for clip, _ in part]), torch.stack([label for _, label in part]))
        batches, prepare = forever(Labelled(), 16, 0, stack), floats
    layout = {"memory_format": torch.channels_last_3d}
    return model, lambda batch: F.cross_entropy(model(prepare(batch[0]).contiguous(**layout)), batch[1]), batches


STORIES = {"text_classification": text, "activity_classification": motion, "pose_to_text": pose,
           "trajectory_transformer": robot, "video_classification": video}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", choices=STORIES)
    parser.add_argument("kind", choices=("before", "after"))
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=100)
    o = parser.parse_args()
    model, loss, batches = STORIES[o.story](o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.5 * (1 + math.cos(math.pi * k / (o.steps + 1))))
    value = numpy.nan
    for _, batch in zip(range(o.steps), batches):
        found = loss(batch)
        optimizer.zero_grad()
        found.backward()
        optimizer.step()
        schedule.step()
        value = found.item()
    print(f"{o.story}, {o.kind}: loss {value:.3f} after {o.steps} steps")


if __name__ == "__main__":
    main()
