# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training step of the pose-to-text model: T5 1.1's layers, on one thread, as fast as possible in
eager mode: fused attention and optimizer, no padding mask (all rows are full), one GEMM for query, key and value, freed
memory reused. Answers with samples per second of processor time."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from steps import parser_of, step_of
from turns import take_turns


def buckets(queries, keys, causal, count=32, farthest=128):
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    out = torch.zeros_like(distance)
    if causal:
        distance = -distance.clamp(max=0)
    else:
        count //= 2
        out = (distance > 0).long() * count
        distance = distance.abs()
    near = count // 2
    far = near + (torch.log(distance.clamp(min=1).float() / near) / math.log(farthest / near) * (count - near)).long()
    return out + torch.where(distance < near, distance, far.clamp(max=count - 1))


class Attention(nn.Module):
    def __init__(self, o, cross=False):
        super().__init__()
        self.heads, self.dropout, self.cross = o.heads, o.dropout, cross
        self.norm = nn.RMSNorm(o.width, eps=1e-6)
        self.q = nn.Linear(o.width, o.width, bias=False) if cross else None
        self.kv = nn.Linear(o.width, (2 if cross else 3) * o.width, bias=False)
        self.out = nn.Linear(o.width, o.width, bias=False)

    def forward(self, x, bias=None, memory=None):
        rows, length, width = x.shape
        y = self.norm(x)
        if self.cross:
            q = self.q(y).view(rows, length, self.heads, -1).transpose(1, 2)
            k, v = self.kv(memory).view(rows, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = self.kv(y).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=self.dropout)
        return x + F.dropout(self.out(mixed.transpose(1, 2).reshape(rows, length, width)), self.dropout)


class FeedForward(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.dropout = o.dropout
        self.norm = nn.RMSNorm(o.width, eps=1e-6)
        self.gate, self.up = nn.Linear(o.width, o.inner, bias=False), nn.Linear(o.width, o.inner, bias=False)
        self.down = nn.Linear(o.inner, o.width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        hidden = F.dropout(F.gelu(self.gate(y)) * self.up(y), self.dropout)
        return x + F.dropout(self.down(hidden), self.dropout)


class Stack(nn.Module):
    def __init__(self, o, length, decodes):
        super().__init__()
        self.dropout = o.dropout
        self.bias = nn.Embedding(32, o.heads)
        nn.init.normal_(self.bias.weight, std=0.02)
        self.attention = nn.ModuleList(Attention(o) for _ in range(o.layers))
        self.memory = nn.ModuleList(Attention(o, cross=True) for _ in range(o.layers if decodes else 0))
        self.feed_forward = nn.ModuleList(FeedForward(o) for _ in range(o.layers))
        self.norm = nn.RMSNorm(o.width, eps=1e-6)
        self.register_buffer("buckets", buckets(length, length, decodes))
        mask = torch.full((length, length), float("-inf")).triu(1) if decodes else torch.zeros(length, length)
        self.register_buffer("mask", mask)

    def forward(self, x, memory=None):
        bias = (self.bias(self.buckets).permute(2, 0, 1) + self.mask)[None]
        for i, attention in enumerate(self.attention):
            x = attention(x, bias)
            if memory is not None:
                x = self.memory[i](x, memory=memory)
            x = self.feed_forward[i](x)
        return F.dropout(self.norm(x), self.dropout)


class PoseToText(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.dropout = o.dropout
        self.frames = nn.Linear(399, o.width)
        self.encoder, self.decoder = Stack(o, o.frames, False), Stack(o, o.tokens, True)
        self.tokens = nn.Embedding(o.vocabulary, o.width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head = nn.Linear(o.width, o.vocabulary, bias=False)

    def forward(self, frames, tokens):
        seen = self.encoder(F.dropout(self.frames(frames), self.dropout))
        return self.head(self.decoder(F.dropout(self.tokens(tokens), self.dropout), seen))


def main():
    o = parser_of(vocabulary=8000, width=256, layers=4, heads=8, inner=1024, frames=128, tokens=32, batch=16).parse_args()

    model = PoseToText(o)
    row, frame, channel = torch.arange(o.batch), torch.arange(o.frames), torch.arange(399)
    frames = ((row[:, None, None] + 7 * frame[:, None] + 31 * channel) % 101).float() / 50 - 1
    ids = (row[:, None] * 977 + torch.arange(o.tokens + 1) * 31) % o.vocabulary

    def loss():
        return F.cross_entropy(model(frames, ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    take_turns(step_of(model, loss), per_call=o.batch)


if __name__ == "__main__":
    main()
