# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the training step of the trajectory transformer: on one thread, as fast as possible in eager mode: causal
fused attention without a mask if all trajectories are full, one GEMM for query, key and value, fused optimizer, freed memory
reused. With --loop the types are added in a loop over trajectories, as in typical code. Answers with samples per second
of processor time."""
import torch
from torch import nn
from torch.nn import functional as F

from steps import parser_of, step_of
from text_classification import Layer
from turns import take_turns


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.loop, self.dropout = o.loop, o.dropout
        self.returned, self.state = nn.Linear(1, o.width), nn.Linear(17, o.width)
        self.action, self.position, self.kind = (nn.Embedding(n, o.width) for n in (o.actions, o.steps, 3))
        for table in (self.action, self.position, self.kind):
            nn.init.normal_(table.weight, std=0.02)
        self.norm = nn.LayerNorm(o.width)
        self.layers = nn.ModuleList(Layer(o, causal=True) for _ in range(o.layers))
        self.head = nn.Linear(o.width, o.actions)

    def tokens(self, returns, states, actions, lengths):
        parts = self.returned(returns), self.state(states), self.action(actions)
        rows, steps, width = parts[0].shape
        if not self.loop:
            x = torch.stack(parts, 2) + self.position.weight[:steps, None] + self.kind.weight
            return x.view(rows, 3 * steps, width)
        sequences = []
        for row, length in enumerate(lengths.tolist()):
            places = self.position(torch.arange(length))
            typed = [part[row, :length] + self.kind(torch.full((length,), kind)) + places
                     for kind, part in enumerate(parts)]
            sequences.append(torch.stack(typed, 1).view(-1, width))
        return nn.utils.rnn.pad_sequence(sequences, batch_first=True)

    def forward(self, returns, states, actions, lengths, mask):
        x = F.dropout(self.norm(self.tokens(returns, states, actions, lengths)), self.dropout)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x[:, 1::3])


def main():
    parser = parser_of(actions=18, steps=20, width=128, layers=3, heads=4, feed_forward=512, batch=64)
    parser.add_argument("--unequal", action="store_true", help="trajectories of 1 to `steps` steps, padded to the longest")
    parser.add_argument("--loop", action="store_true")
    o = parser.parse_args()

    model = Model(o)
    row, step_ = torch.arange(o.batch)[:, None], torch.arange(o.steps)
    lengths = 1 + 7 * torch.arange(o.batch) % o.steps if o.unequal else torch.full((o.batch,), o.steps)
    actions = (3 * row + 2 * step_) % o.actions
    returns = (row % 4).float().expand(o.batch, o.steps)[..., None] / 4
    states = torch.sin(1 + actions[..., None] * torch.arange(1.0, 18.0) + 0.1 * row[..., None])
    real = step_ < lengths[:, None]
    labels = actions.masked_fill(~real, -100)
    mask = None
    if o.unequal:
        mask = torch.ones(3 * o.steps, 3 * o.steps, dtype=torch.bool).tril() & real.repeat_interleave(3, 1)[:, None, None]

    def loss():
        return F.cross_entropy(model(returns, states, actions, lengths, mask).flatten(0, 1), labels.flatten())

    take_turns(step_of(model, loss), per_call=o.batch)


if __name__ == "__main__":
    main()
