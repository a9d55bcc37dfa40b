# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the peers of training steps: sizes as arguments, and repeated steps on one batch."""
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
    """Returns a function that minimizes loss() with fused AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step
