# SPDX-License-Identifier: Apache-2.0
"""Trains the text classifier of examples/ in PyTorch, on one set of files with equal tokens, vocabulary, model, optimizer
and schedule, and prints the accuracy on the evaluation file for each seed:

    python text_accuracy.py TRAIN.csv TEST.csv --seeds 5
"""
import argparse
import collections
import csv
import math
import re

import torch
from torch.nn import functional as F

from text_classification import Classifier

WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+|[^\s\x00-\x20\x7f]")


def tokens_of(text):
    """Returns lower-case words, as data::WordTokenizer does, without single marks below the digit 0."""
    for token in WORD.findall(text.encode()):
        for begin in range(0, len(token), 64):
            part = token[begin : begin + 64]
            if len(part) > 1 or part[0] >= ord("0"):
                yield part.lower()


def rows_of(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    if rows[0] == ["review", "sentiment"]:
        return [(review, int(sentiment == "positive")) for review, sentiment in rows[1:]]
    return [(title + " " + description, int(label) - 1) for label, title, description in rows]


def batches_of(samples, size):
    for begin in range(0, len(samples), size):
        part = samples[begin : begin + size]
        lengths = torch.tensor([[len(ids)] for ids, _ in part])
        ids = torch.zeros(len(part), int(lengths.max()), dtype=torch.long)
        for row, (own, _) in enumerate(part):
            ids[row, : len(own)] = torch.tensor(own)
        yield ids, lengths, torch.tensor([label for _, label in part])


def set_dropout(model, share):
    for module in model.modules():
        if hasattr(module, "dropout"):
            module.dropout = share


def accuracy(o, training, evaluation, seed):
    torch.manual_seed(seed)
    model = Classifier(o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.01, fused=True)
    steps = o.epochs * math.ceil(len(training) / o.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    for _ in range(o.epochs):
        order = torch.randperm(len(training)).tolist()
        for ids, lengths, labels in batches_of([training[i] for i in order], o.batch):
            optimizer.zero_grad()
            F.cross_entropy(model(ids, lengths), labels).backward()
            optimizer.step()
            schedule.step()
    set_dropout(model, 0.0)
    with torch.no_grad():
        right = sum(int((model(ids, lengths).argmax(1) == labels).sum())
                    for ids, lengths, labels in batches_of(evaluation, o.batch))
    return right / len(evaluation)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    for name, value in dict(seeds=5, epochs=3, batch=32, length=128, width=128, layers=2, heads=4, feed_forward=256,
                            vocabulary=20000, threads=1).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    o = parser.parse_args()
    o.norm_first = False
    torch.set_num_threads(o.threads)
    texts, held_out = rows_of(o.train), rows_of(o.test)
    counts = collections.Counter(token for text, _ in texts for token in tokens_of(text))
    kept = sorted((-count, token) for token, count in counts.items() if count >= 2)[: o.vocabulary - 2]
    numbers = {token: number + 2 for number, (_, token) in enumerate(kept)}  # 0 is padding, 1 is unknown
    o.vocabulary, o.classes = len(numbers) + 2, 1 + max(label for _, label in texts)
    encode = lambda rows: [([numbers.get(token, 1) for token in tokens_of(text)][: o.length] or [1], label)
                           for text, label in rows]
    training, evaluation = encode(texts), encode(held_out)
    print("vocabulary", o.vocabulary)
    all_of = []
    for seed in range(1, o.seeds + 1):
        all_of.append(accuracy(o, training, evaluation, seed))
        print(f"seed {seed} accuracy {all_of[-1]:.4f}", flush=True)
    mean = sum(all_of) / len(all_of)
    print(f"mean {mean:.4f}, deviation {(sum((a - mean) ** 2 for a in all_of) / max(1, len(all_of) - 1)) ** 0.5:.4f}")


if __name__ == "__main__":
    main()
