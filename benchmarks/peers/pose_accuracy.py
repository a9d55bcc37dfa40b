# SPDX-License-Identifier: Apache-2.0
"""Trains the pose-to-text model of examples/ in PyTorch on a folder of its format, with equal sizes, optimizer and
schedule, and prints the accuracy of pieces on the index's dev part for each seed:

    python pose_accuracy.py FOLDER CHECKPOINT --seeds 5

The tokenizer is the one that a run of pose_to_text on that folder saved in CHECKPOINT. Needs sentencepiece."""
import argparse
import base64
import csv
import json
import math
import os
import struct
import types

import numpy
import sentencepiece
import torch
from torch import nn
from torch.nn import functional as F

from pose_to_text import Attention, FeedForward, buckets

PAD, BEGIN, END = 0, 1, 2


def tokenizer_of(checkpoint):
    with open(checkpoint, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(header["__metadata__"]["tokenizer"]))


def read(folder, pieces):
    parts = {"train": [], "dev": []}
    with open(os.path.join(folder, "index.tsv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            pose = torch.from_numpy(numpy.load(os.path.join(folder, row["file"]))).flatten(1)
            parts[row["split"]].append((pose, torch.tensor(pieces.encode(row["text"]))))
    return parts


class Stack(nn.Module):
    """As pose_to_text.Stack, of sequences of unequal length."""

    def __init__(self, o, decodes):
        super().__init__()
        self.dropout, self.decodes = o.dropout, decodes
        self.bias = nn.Embedding(32, o.heads)
        nn.init.normal_(self.bias.weight, std=0.02)
        self.attention = nn.ModuleList(Attention(o) for _ in range(o.layers))
        self.memory = nn.ModuleList(Attention(o, cross=True) for _ in range(o.layers if decodes else 0))
        self.feed_forward = nn.ModuleList(FeedForward(o) for _ in range(o.layers))
        self.norm = nn.RMSNorm(o.width, eps=1e-6)

    def forward(self, x, mask, memory=None, memory_mask=None):
        length = x.shape[1]
        bias = self.bias(buckets(length, length, self.decodes)).permute(2, 0, 1)[None] + mask
        if self.decodes:
            bias = bias + torch.full((length, length), float("-inf")).triu(1)
        for i, attention in enumerate(self.attention):
            attention.dropout = self.dropout if self.training else 0
            x = attention(x, bias)
            if memory is not None:
                self.memory[i].dropout = attention.dropout
                x = self.memory[i](x, memory_mask, memory)
            self.feed_forward[i].dropout = attention.dropout
            x = self.feed_forward[i](x)
        return F.dropout(self.norm(x), self.dropout, self.training)


class PoseToText(nn.Module):
    def __init__(self, o, coordinates, vocabulary):
        super().__init__()
        self.dropout = o.dropout
        self.frames = nn.Linear(coordinates, o.width)
        self.encoder, self.decoder = Stack(o, False), Stack(o, True)
        self.tokens = nn.Embedding(vocabulary, o.width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head = nn.Linear(o.width, vocabulary, bias=False)

    def forward(self, frames, frames_mask, tokens, tokens_mask):
        drop = lambda x: F.dropout(x, self.dropout, self.training)
        seen = self.encoder(drop(self.frames(frames)), frames_mask)
        return self.head(self.decoder(drop(self.tokens(tokens)), tokens_mask, seen, frames_mask))


def masked(lengths):
    present = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    return torch.zeros(present.shape).masked_fill(~present, float("-inf"))[:, None, None]


def batch_of(samples):
    poses, texts = zip(*samples)
    size = torch.tensor([len(x) for x in poses])
    tokens = [torch.cat([torch.tensor([BEGIN]), x]) for x in texts]
    following = [torch.cat([x, torch.tensor([END])]) for x in texts]
    pad = lambda rows, value: nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
    count = torch.tensor([len(x) for x in tokens])
    return (pad(poses, 0.0), masked(size), pad(tokens, PAD), masked(count)), pad(following, -100)


def accuracy(model, samples):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for at in range(0, len(samples), 50):
            inputs, following = batch_of(samples[at : at + 50])
            known = following != -100
            right += ((model(*inputs).argmax(-1) == following) & known).sum().item()
            seen += known.sum().item()
    model.train()
    return right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("checkpoint")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    o = parser.parse_args()
    sizes = types.SimpleNamespace(width=128, layers=2, heads=4, inner=256, dropout=0.1)
    pieces = tokenizer_of(o.checkpoint)
    parts = read(o.folder, pieces)
    torch.set_num_threads(1)
    steps = o.epochs * math.ceil(len(parts["train"]) / o.batch_size)
    for seed in range(1, o.seeds + 1):
        torch.manual_seed(seed)
        model = PoseToText(sizes, parts["train"][0][0].shape[1], pieces.get_piece_size())
        optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * s / steps)))
        for _ in range(o.epochs):
            order = torch.randperm(len(parts["train"])).tolist()
            for at in range(0, len(order), o.batch_size):
                inputs, following = batch_of([parts["train"][i] for i in order[at : at + o.batch_size]])
                loss = F.cross_entropy(model(*inputs).flatten(0, 1), following.flatten(), label_smoothing=0.1)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        print(f"seed {seed}: accuracy {accuracy(model, parts['dev']):.4f}", flush=True)


if __name__ == "__main__":
    main()
