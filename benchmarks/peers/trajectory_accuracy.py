# SPDX-License-Identifier: Apache-2.0
"""Trains the trajectory transformer of examples/ in PyTorch, on one set of joined episodes with equal windows, model,
optimizer and schedule, and prints the accuracy on the evaluation's episodes for each seed:

    python trajectory_accuracy.py TRAINING_FOLDER EVALUATION_FOLDER --seeds 5
"""
import argparse
import math

import numpy
import torch
from torch.nn import functional as F

from trajectory_transformer import Model


class Episodes:
    def __init__(self, folder):
        load = lambda name: numpy.load(f"{folder}/{name}.npy")
        self.states, self.actions, rewards = load("observations"), load("actions"), load("rewards")
        lengths = load("episode_lengths")
        self.ends = numpy.cumsum(lengths)
        self.begins = self.ends - lengths
        self.returns = numpy.concatenate(
            [numpy.cumsum(rewards[b:e][::-1])[::-1] for b, e in zip(self.begins, self.ends)]
        ).astype(numpy.float32)

    def windows(self, steps):
        """Yields episode and first step of each window, in sequence."""
        return [(e, t) for e in range(len(self.ends)) for t in range(0, self.ends[e] - self.begins[e], steps)]

    def batch(self, windows, o):
        """Padded returns, states, actions, labels (-100 in padding and in the previous region) and lengths."""
        parts = []
        for episode, begin in windows:
            b, e = self.begins[episode], self.ends[episode]
            last = min(e, b + begin + o.current)
            begin = max(b, b + begin)
            parts.append((max(b, begin - o.context), begin, last))
        lengths = torch.tensor([last - first for first, _, last in parts])
        shape = len(parts), int(lengths.max())
        returns, states = torch.zeros(*shape, 1), torch.zeros(*shape, self.states.shape[1])
        actions, labels = torch.zeros(shape, dtype=torch.long), torch.full(shape, -100)
        for row, (first, begin, last) in enumerate(parts):
            n = last - first
            returns[row, :n, 0] = torch.from_numpy(self.returns[first:last])
            states[row, :n] = torch.from_numpy(self.states[first:last])
            actions[row, :n] = torch.from_numpy(self.actions[first:last])
            labels[row, begin - first : n] = actions[row, begin - first : n]
        real = torch.arange(shape[1]) < lengths[:, None]
        tokens = 3 * shape[1]
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril() & real.repeat_interleave(3, 1)[:, None, None]
        return returns, states, actions, lengths, mask, labels


def accuracy(o, training, evaluation, seed):
    torch.manual_seed(seed)
    model = Model(o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.01, fused=True)
    windows = training.windows(o.current)
    steps = o.epochs * math.ceil(len(windows) / o.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    for _ in range(o.epochs):
        order = torch.randperm(len(windows)).tolist()
        for at in range(0, len(order), o.batch):
            drawn = []
            for i in order[at : at + o.batch]:
                episode = windows[i][0]
                length = training.ends[episode] - training.begins[episode]
                drawn.append((episode, int(torch.randint(1 - o.current, int(length), ()))))
            *inputs, labels = training.batch(drawn, o)
            optimizer.zero_grad()
            F.cross_entropy(model(*inputs).flatten(0, 1), labels.flatten()).backward()
            optimizer.step()
            schedule.step()
    for module in model.modules():
        if hasattr(module, "dropout"):
            module.dropout = 0.0
    right = all_of = 0
    windows = evaluation.windows(o.current)
    with torch.no_grad():
        for at in range(0, len(windows), o.batch):
            *inputs, labels = evaluation.batch(windows[at : at + o.batch], o)
            counted = labels >= 0
            right += int((model(*inputs).argmax(2) == labels)[counted].sum())
            all_of += int(counted.sum())
    return right / all_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    for name, value in dict(seeds=5, epochs=8, batch=32, current=20, context=10, width=128, layers=3, heads=4,
                            feed_forward=512, actions=18, threads=1).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    o = parser.parse_args()
    o.loop, o.steps = False, o.current + o.context
    torch.set_num_threads(o.threads)
    training, evaluation = Episodes(o.train), Episodes(o.test)
    mean, factor = training.states.mean(0), 1 / training.states.std(0)
    scale = numpy.abs(training.returns).max()
    for each in (training, evaluation):
        each.states, each.returns = (each.states - mean) * factor, each.returns / scale
    all_of = []
    for seed in range(1, o.seeds + 1):
        all_of.append(accuracy(o, training, evaluation, seed))
        print(f"seed {seed} accuracy {all_of[-1]:.4f}", flush=True)
    mean = sum(all_of) / len(all_of)
    print(f"mean {mean:.4f}, deviation {(sum((a - mean) ** 2 for a in all_of) / max(1, len(all_of) - 1)) ** 0.5:.4f}")


if __name__ == "__main__":
    main()
