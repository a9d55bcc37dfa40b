# SPDX-License-Identifier: Apache-2.0
"""Trains the video classifier of examples/ in PyTorch on a folder of its format, with equal model, class weights,
optimizer and schedule, and prints accuracy and macro F1 on the index's test part for each seed:

    python video_accuracy.py FOLDER --seeds 5
"""
import argparse
import csv
import math
import os

import numpy
import torch
from torch import nn
from torch.nn import functional as F


def read(folder):
    with open(os.path.join(folder, "classes.txt"), encoding="utf-8") as file:
        classes = file.read().split("\n")[:-1]
    parts, arrays = {"train": ([], []), "test": ([], [])}, {}
    with open(os.path.join(folder, "index.csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            path, first, frames = os.path.join(folder, row["file"]), int(row["first_frame"]), int(row["frames"])
            if path not in arrays:
                arrays[path] = numpy.load(path, mmap_mode="r")
            clips, labels = parts[row["split"]]
            clips.append(torch.from_numpy(numpy.array(arrays[path][first : first + frames])))
            labels.append(classes.index(row["label"]))
    return classes, {name: (torch.stack(clips), torch.tensor(labels)) for name, (clips, labels) in parts.items()}


def model_for(height, width, classes):
    channels, side = [16], min(height, width)
    while side > 8:
        channels.append(min(256, 2 * channels[-1]))
        side = (side + 1) // 2
    layers = []
    for i, (inputs, outputs) in enumerate(zip([1] + channels, channels)):
        stride = (1, 2, 2) if i == 0 else 1 if i == len(channels) - 1 else 2
        layers += [nn.Conv3d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm3d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(channels[-1], classes))


def floats(clips):
    return ((clips.float() / 255 - 0.5) / 0.25).unsqueeze(1)


def scores(model, clips, labels, classes):
    model.eval()
    with torch.no_grad():
        found = torch.cat([model(floats(part)).argmax(1) for part in clips.split(64)])
    model.train()
    each = []
    for k in range(classes):
        both, all_of = ((found == k) & (labels == k)).sum().item(), ((found == k).sum() + (labels == k).sum()).item()
        if all_of:
            each.append(2 * both / all_of)
    return (found == labels).float().mean().item(), sum(each) / len(each)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    o = parser.parse_args()
    classes, parts = read(o.folder)
    clips, labels = parts["train"]
    counts = torch.bincount(labels, minlength=len(classes)).float()
    weights = torch.where(counts > 0, len(labels) / (len(classes) * counts), 0.0)
    for seed in range(1, o.seeds + 1):
        torch.manual_seed(seed)
        model = model_for(*clips.shape[2:], len(classes))
        optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.01)
        steps = o.epochs * math.ceil(len(labels) / o.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.5 * (1 + math.cos(math.pi * k / steps)))
        for _ in range(o.epochs):
            for chosen in torch.randperm(len(labels)).split(o.batch):
                loss = F.cross_entropy(model(floats(clips[chosen])), labels[chosen], weight=weights)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        print("seed %d: accuracy %.4f, f1 %.4f" % (seed, *scores(model, *parts["test"], len(classes))), flush=True)


if __name__ == "__main__":
    main()
