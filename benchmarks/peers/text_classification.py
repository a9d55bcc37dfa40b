# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training-step benchmarks: the text classifier of examples/, on one thread, as fast as possible
in eager mode: fused attention and optimizer, no padding mask if all rows are full, one GEMM for query, key and value,
freed memory reused. Texts of unequal lengths are padded, as in typical code; with --packed their tokens are
concatenated, and each text has a separate attention call. (Nested tensors take longer than padding on a processor.)
Answers with samples per second of processor time."""
import torch
from torch import nn
from torch.nn import functional as F

from kernels import zipf_ids
from steps import parser_of, step_of
from turns import take_turns


class Layer(nn.Module):
    """Norms come after each part, or first; a causal layer needs no mask if all rows are full."""

    def __init__(self, o, norm_first=False, causal=False):
        super().__init__()
        self.heads, self.dropout, self.norm_first, self.causal = o.heads, o.dropout, norm_first, causal
        self.qkv, self.out = nn.Linear(o.width, 3 * o.width), nn.Linear(o.width, o.width)
        self.up, self.down = nn.Linear(o.width, o.feed_forward), nn.Linear(o.feed_forward, o.width)
        self.norm1, self.norm2 = nn.LayerNorm(o.width), nn.LayerNorm(o.width)

    def attention(self, x, mask):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout,
                                               is_causal=self.causal and mask is None)
        return F.dropout(self.out(mixed.transpose(1, 2).reshape(rows, length, width)), self.dropout)

    def feed_forward(self, x):
        return F.dropout(self.down(F.dropout(F.gelu(self.up(x)), self.dropout)), self.dropout)

    def forward(self, x, mask):
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


class PackedLayer(Layer):
    def attention(self, x, lengths):
        """x [tokens, width], for texts with these numbers of tokens."""
        tokens, width = x.shape
        mixed = []
        for part in self.qkv(x).view(tokens, 3, self.heads, width // self.heads).split(lengths):
            q, k, v = part.permute(1, 2, 0, 3)[:, None]
            one = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
            mixed.append(one[0].transpose(0, 1).reshape(-1, width))
        return F.dropout(self.out(torch.cat(mixed)), self.dropout)


class Classifier(nn.Module):
    Layer = Layer

    def __init__(self, o):
        super().__init__()
        self.dropout = o.dropout
        self.token, self.position = nn.Embedding(o.vocabulary, o.width), nn.Embedding(o.length, o.width)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)
        self.layers = nn.ModuleList(self.Layer(o, o.norm_first) for _ in range(o.layers))
        self.head = nn.Linear(o.width, o.classes)
        self.register_buffer("places", torch.arange(o.length))

    def forward(self, ids, lengths):
        """`lengths` [rows, 1] is None if all rows are full."""
        x = F.dropout(self.token(ids) + self.position(self.places[: ids.shape[1]]), self.dropout)
        tokens = None if lengths is None else self.places[: ids.shape[1]] < lengths
        for layer in self.layers:
            x = layer(x, None if lengths is None else tokens[:, None, None, :])
        return self.head(x.mean(1) if lengths is None else (x * tokens[..., None]).sum(1) / lengths)


class PackedClassifier(Classifier):
    Layer = PackedLayer

    def forward(self, ids, lengths):
        """`ids` [tokens], for texts with these numbers of tokens."""
        places = torch.cat([self.places[:length] for length in lengths])
        x = F.dropout(self.token(ids) + self.position(places), self.dropout)
        for layer in self.layers:
            x = layer(x, lengths)
        return self.head(torch.segment_reduce(x, "mean", lengths=torch.tensor(lengths)))


def arguments():
    parser = parser_of(vocabulary=20000, width=128, layers=2, heads=4, feed_forward=256, length=128, batch=32, classes=4)
    parser.add_argument("--norm-first", action="store_true")
    parser.add_argument("--unequal", action="store_true", help="lengths as Sizes::length_of gives them, padded to the longest")
    parser.add_argument("--packed", action="store_true", help="with --unequal: no padding")
    parser.add_argument("--autocast", action="store_true", help="in bfloat16 where PyTorch thinks it right")
    return parser.parse_args()


def training(o, wrap=lambda model: model):
    """Returns a function that makes one step of wrap(model)."""
    model = wrap((PackedClassifier if o.packed else Classifier)(o))
    ids = zipf_ids(o.vocabulary, o.batch * o.length).reshape(o.batch, o.length)
    labels = torch.arange(o.batch) % o.classes
    lengths = None
    if o.unequal:
        parts = [(row + 1) * 0.6180339887498949 % 1.0 for row in range(o.batch)]
        lengths = [int(o.length / 8 * 8**part) for part in parts]
        if o.packed:
            ids = torch.cat([row[:length] for row, length in zip(ids, lengths)])
        else:
            ids = ids[:, : max(lengths)].contiguous()
            lengths = torch.tensor(lengths)[:, None]

    def loss():
        with torch.autocast("cpu", torch.bfloat16, enabled=o.autocast):
            return F.cross_entropy(model(ids, lengths), labels)

    return step_of(model, loss)


def main():
    o = arguments()
    take_turns(training(o), per_call=o.batch)


if __name__ == "__main__":
    main()
