# SPDX-License-Identifier: Apache-2.0
"""Trains the text classifier of examples/ in PyTorch on a GPU, with a DataLoader as users write one:

    python gpu_text.py TRAIN.csv TEST.csv eager|compiled float|bf16 [--epochs 3] [--batch 32] [--device cuda]

Prints samples per second of each epoch, then those of all epochs after the first, and the accuracy."""
import argparse
import collections
import time
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from gpu_points import TEXT_CLASSIFIER
from text_accuracy import rows_of, set_dropout, tokens_of
from text_classification import Classifier


class Texts(torch.utils.data.Dataset):
    def __init__(self, rows, numbers, length):
        self.rows = [(torch.tensor([numbers.get(token, 1) for token in tokens_of(text)][:length] or [1]), label)
                     for text, label in rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(samples):
    ids, labels = zip(*samples)
    lengths = torch.tensor([[len(own)] for own in ids])
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), lengths, torch.tensor(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("how", choices=["eager", "compiled"])
    parser.add_argument("kind", choices=["float", "bf16"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cuda")
    o = parser.parse_args()
    torch.manual_seed(1)
    rows = rows_of(o.train)
    counts = collections.Counter(token for text, _ in rows for token in tokens_of(text))
    numbers = {token: number + 2 for number, (token, _) in enumerate(counts.most_common(19998))}
    sizes = SimpleNamespace(**{**TEXT_CLASSIFIER, "batch": o.batch})
    model = Classifier(sizes).to(o.device)
    function = torch.compile(model, dynamic=True) if o.how == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = torch.utils.data.DataLoader(
        Texts(rows, numbers, sizes.length), o.batch, shuffle=True, collate_fn=collate, num_workers=o.workers,
        persistent_workers=o.workers > 0, pin_memory=o.device == "cuda")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, o.epochs * len(loader))
    times = []
    for epoch in range(o.epochs):
        start = time.perf_counter()
        for batch in loader:
            ids, lengths, labels = (part.to(o.device, non_blocking=True) for part in batch)
            optimizer.zero_grad()
            with torch.autocast(o.device, torch.bfloat16, enabled=o.kind == "bf16"):
                loss = F.cross_entropy(function(ids, lengths), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
        loss.item()  # waits for the device
        times.append(time.perf_counter() - start)
        print(f"epoch {epoch + 1}: {len(rows) / times[-1]:.0f} samples/s", flush=True)
    later = times[1:] or times
    set_dropout(model, 0.0)
    evaluation = torch.utils.data.DataLoader(Texts(rows_of(o.test), numbers, sizes.length), 256, collate_fn=collate)
    right = total = 0
    with torch.no_grad():
        for ids, lengths, labels in evaluation:
            right += (model(ids.to(o.device), lengths.to(o.device)).argmax(1).cpu() == labels).sum().item()
            total += len(labels)
    print(f"text {o.kind} b{o.batch}\t{o.how}\t{len(rows) * len(later) / sum(later):.0f}\t{right / total:.4f}", flush=True)


if __name__ == "__main__":
    main()
