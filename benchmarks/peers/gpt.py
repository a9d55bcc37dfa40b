# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training step of GPT-2's architecture: on one thread, with one GEMM for query, key and value, fused
causal attention, tied tables and a fused optimizer. With --compiled by torch.compile. Answers with samples per second of
processor time."""
import torch
from torch import nn
from torch.nn import functional as F

from steps import parser_of, step_of
from turns import take_turns


class Layer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads = o.heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(o.width), nn.LayerNorm(o.width)
        self.joined, self.output = nn.Linear(o.width, 3 * o.width), nn.Linear(o.width, o.width)
        self.wide, self.narrow = nn.Linear(o.width, 4 * o.width), nn.Linear(4 * o.width, o.width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.joined(self.attention_norm(x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(F.gelu(self.wide(self.mlp_norm(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.token, self.position = nn.Embedding(o.vocabulary, o.width), nn.Embedding(o.length, o.width)
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(o) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.width)

    def forward(self, tokens, labels):
        x = self.token(tokens) + self.position.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def main():
    parser = parser_of(vocabulary=65, length=256, batch=4, layers=6, heads=6, width=384)
    parser.add_argument("--autocast", action="store_true", help="bfloat16")
    parser.add_argument("--compiled", action="store_true")
    o = parser.parse_args()

    model = Model(o)
    run = torch.compile(model) if o.compiled else model
    row, i = torch.arange(o.batch)[:, None], torch.arange(o.length + 1)
    ids = (i * 7919 + row * 104729 + i * i * 31) % o.vocabulary
    tokens, labels = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def loss():
        with torch.autocast("cpu", torch.bfloat16, enabled=o.autocast):
            return run(tokens, labels)

    take_turns(step_of(model, loss), per_call=o.batch)


if __name__ == "__main__":
    main()
