# SPDX-License-Identifier: Apache-2.0
"""What the peers of training steps share: sizes as arguments, and a step on the same batch again and again."""
import argparse

import torch

import kernels  # noqa: F401: one thread, and freed memory reused


def parser_of(**sizes):
    """Takes --name N for each of `sizes`, with its default, and --dropout."""
    parser = argparse.ArgumentParser()
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.1)
    return parser


def step_of(model, loss):
    """A function that lowers loss() by AdamW, fused."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step
