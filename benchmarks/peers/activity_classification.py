# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the activity classifier: the three networks of examples/activity_classification. With --data FOLDER it
trains on its files, with equal optimizer, schedule and batches, once for each seed, and prints the accuracy on the test part
and training windows per second. Without --data it answers with windows per second of processor time on random windows."""
import argparse
import time

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from steps import step_of
from text_classification import Layer
from turns import take_turns


class Flatten(nn.Sequential):
    def __init__(self, o):
        super().__init__(nn.Flatten(), nn.Linear(128 * 9, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 128), nn.ReLU(),
                         nn.Dropout(0.1), nn.Linear(128, 6))


class Conv(nn.Sequential):
    """On [rows, signals, steps], the layout of PyTorch's convolutions."""

    def __init__(self, o):
        layers = []
        for inputs, outputs, stride in ((9, 64, 1), (64, 128, 2), (128, 128, 2)):
            layers += [nn.Conv1d(inputs, outputs, 5, stride, 2, bias=False), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True)]
        super().__init__(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 6))

    def forward(self, x):
        return super().forward(x.transpose(1, 2))


class Transformer(nn.Module):
    def __init__(self, o):
        super().__init__()
        sizes = argparse.Namespace(width=64, heads=4, feed_forward=128, dropout=0.1)
        self.input, self.position = nn.Linear(9, 64), nn.Parameter(torch.randn(128, 64) * 0.02)
        self.layers, self.head = nn.ModuleList(LayerWithModes(sizes) for _ in range(2)), nn.Linear(64, 6)

    def forward(self, x):
        x = F.dropout(self.input(x) + self.position, 0.1, self.training)
        for layer in self.layers:
            x = layer(x, None)
        return self.head(x.mean(1))


class LayerWithModes(Layer):
    """No dropout in evaluation."""

    def __init__(self, o):
        super().__init__(o)
        self.probability = o.dropout

    def forward(self, x, mask):
        self.dropout = self.probability if self.training else 0.0
        return super().forward(x, mask)


MODES = {"flatten": Flatten, "conv": Conv, "transformer": Transformer}


def read(folder, part):
    signals = [numpy.loadtxt(f"{folder}/{part}/Inertial Signals/{kind}_{axis}_{part}.txt", dtype=numpy.float32)
               for kind in ("body_acc", "total_acc", "body_gyro") for axis in "xyz"]
    labels = numpy.loadtxt(f"{folder}/{part}/y_{part}.txt", dtype=numpy.int64) - 1
    return torch.from_numpy(numpy.stack(signals, 2)), torch.from_numpy(labels)


def train(o, seed, known, held_out):
    torch.manual_seed(seed)
    model = MODES[o.mode](o)
    windows, labels = known
    steps_of_epoch = -(-len(labels) // o.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, o.epochs * steps_of_epoch)
    start = time.perf_counter()
    for _ in range(o.epochs):
        model.train()
        for rows in torch.randperm(len(labels)).split(o.batch):
            loss = F.cross_entropy(model(windows[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    seconds = time.perf_counter() - start
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item()
                    for x, y in zip(held_out[0].split(250), held_out[1].split(250)))
    return right / len(held_out[1]), o.epochs * len(labels) / seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=MODES, default="conv")
    parser.add_argument("--data", help="a folder with train/ and test/")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    if o.data:
        known, held_out = read(o.data, "train"), read(o.data, "test")
        for seed in o.seeds:
            accuracy, rate = train(o, seed, known, held_out)
            print(f"{o.mode}, seed {seed}: accuracy {accuracy:.4f}, {rate:.0f} windows/s", flush=True)
        return
    model, windows, labels = MODES[o.mode](o), torch.randn(o.batch, 128, 9), torch.arange(o.batch) % 6
    take_turns(step_of(model, lambda: F.cross_entropy(model(windows), labels)), per_call=o.batch)


if __name__ == "__main__":
    main()
