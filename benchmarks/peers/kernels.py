# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the kernel benchmarks: kernels.py CASE [SIZE...], on one thread."""
import ctypes
import sys

import torch

from turns import take_turns

# Large tensors use freed memory instead of new pages of the kernel: page faults would be most of the time of some
# operations, and are not part of them.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 30)
ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, 1 << 30)
torch.set_num_threads(1)
torch.manual_seed(0)


def zipf_ids(rows, count):
    """Returns ids equal to zipf_ids in kernel/zipf.hpp."""
    part = (torch.arange(count, dtype=torch.float64) * 0.6180339887498949) % 1.0
    rank = (rows**part).to(torch.int64) - 1
    return rank * 7919 % rows


def adamw(count, fused):
    values = torch.randn(count, requires_grad=True)
    values.grad = torch.randn(count)
    return torch.optim.AdamW([values], lr=1e-3, fused=bool(fused)).step


def embedding_forward(rows, width, samples, length):
    token, position = torch.nn.Embedding(rows, width), torch.nn.Embedding(length, width)
    ids, places = zipf_ids(rows, samples * length).reshape(samples, length), torch.arange(length)

    def work():
        with torch.no_grad():
            return token(ids) + position(places)

    return work


def embedding_backward(rows, width, samples, length):
    """The bare operations, without autograd: PyTorch's minimum."""
    ids = zipf_ids(rows, samples * length).reshape(samples, length)
    gradient = torch.randn(samples, length, width)
    return lambda: (torch.ops.aten.embedding_dense_backward(gradient, ids, rows, -1, False), gradient.sum(0))


def embedding_backward_add(rows, width, samples, length):
    """Adds to existing gradients, as autograd accumulates them."""
    parts = embedding_backward(rows, width, samples, length)
    token, position = torch.zeros(rows, width), torch.zeros(length, width)

    def work():
        new_token, new_position = parts()
        token.add_(new_token)
        position.add_(new_position)

    return work


def embedding_of_pairs(rows, width, samples, length):
    """Tokens, positions and segment types, layer norm and dropout, as in BERT; adds to existing gradients."""
    token, position, half = (torch.nn.Embedding(n, width) for n in (rows, length, 2))
    norm = torch.nn.LayerNorm(width)
    ids, places = zipf_ids(rows, samples * length).reshape(samples, length), torch.arange(length)
    halves = (places >= length // 2).long().expand(samples, length)
    gradient = torch.randn(samples, length, width)

    def work():
        x = norm(token(ids) + position(places) + half(halves))
        torch.nn.functional.dropout(x, 0.1).backward(gradient)

    return work


def trajectory_types(samples, steps, width):
    """A type embedding added to returns, states and actions of each trajectory in a loop, 3 small tensors each, then
    interleaved and concatenated; forward and backward."""
    types = torch.nn.Embedding(3, width)
    lengths = [steps - r % 10 for r in range(samples)]
    inputs = [[torch.randn(n, width, requires_grad=True) for _ in range(3)] for n in lengths]
    gradient = torch.randn(3 * sum(lengths), width)

    def work():
        types.weight.grad = None
        sequences = []
        for trajectory in inputs:
            typed = []
            for kind, x in enumerate(trajectory):
                x.grad = None
                typed.append(x + types(torch.full((x.shape[0],), kind)))
            sequences.append(torch.stack(typed, 1).reshape(-1, width))
        torch.cat(sequences).backward(gradient)

    return work


def layer_norm_forward(rows, width):
    x, weight, bias = torch.randn(rows, width), torch.ones(width), torch.zeros(width)
    return lambda: torch.ops.aten.native_layer_norm(x, [width], weight, bias, 1e-5)


def layer_norm_backward(rows, width):
    x, weight, bias, dy = torch.randn(rows, width), torch.ones(width), torch.zeros(width), torch.randn(rows, width)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, [width], weight, bias, 1e-5)
    mask = [True, True, True]
    return lambda: torch.ops.aten.native_layer_norm_backward(dy, x, [width], mean, rstd, weight, bias, mask)


def group_norm_operands(rows, places, channels):
    return torch.randn(rows, channels, places), torch.ones(channels), torch.zeros(channels)


def group_norm_forward(rows, places, channels, groups):
    x, weight, bias = group_norm_operands(rows, places, channels)
    return lambda: torch.ops.aten.native_group_norm(x, weight, bias, rows, channels, places, groups, 1e-5)


def group_norm_backward(rows, places, channels, groups):
    x, weight, bias = group_norm_operands(rows, places, channels)
    dy, mask = torch.randn(rows, channels, places), [True, True, True]
    _, mean, rstd = torch.ops.aten.native_group_norm(x, weight, bias, rows, channels, places, groups, 1e-5)
    return lambda: torch.ops.aten.native_group_norm_backward(dy, x, mean, rstd, weight, rows, channels, places, groups,
                                                             mask)


def batch_norm_operands(rows, side, channels, memory_format):
    x = torch.randn(rows, channels, side, side).to(memory_format=memory_format)
    return x, torch.ones(channels), torch.zeros(channels), torch.zeros(channels), torch.ones(channels)


def batch_norm_forward(rows, side, channels):
    """Channels last, PyTorch's faster format of this pass."""
    operands = batch_norm_operands(rows, side, channels, torch.channels_last)
    return lambda: torch.ops.aten.native_batch_norm(*operands, True, 0.1, 1e-5)


def batch_norm_backward(rows, side, channels):
    """Channels first, PyTorch's faster format of this pass."""
    x, weight, bias, mean, variance = batch_norm_operands(rows, side, channels, torch.contiguous_format)
    dy = torch.randn(rows, channels, side, side)
    _, saved, rstd = torch.ops.aten.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)
    return lambda: torch.ops.aten.native_batch_norm_backward(dy, x, weight, mean, variance, saved, rstd, True, 1e-5,
                                                             [True, True, True])


def convolution_operands(rows, height, width, channels, kernel_h, kernel_w, dilation, groups):
    """Channels last, PyTorch's faster format. One spatial axis is two, the first with extent 1."""
    last = torch.channels_last
    x = torch.randn(rows, channels, height, width).to(memory_format=last)
    weight = torch.randn(channels, channels // groups, kernel_h, kernel_w).to(memory_format=last)
    padding = [(kernel_h - 1) // 2, dilation * (kernel_w - 1) // 2]
    arguments = ([1, 1], padding, [1, dilation], False, [0, 0], groups)
    return x, weight, torch.zeros(channels), arguments


def convolution_forward(*sizes):
    x, weight, bias, arguments = convolution_operands(*sizes)
    return lambda: torch.ops.aten.convolution(x, weight, bias, *arguments)


def convolution_backward(*sizes):
    x, weight, bias, arguments = convolution_operands(*sizes)
    dy = torch.randn_like(torch.ops.aten.convolution(x, weight, bias, *arguments))
    return lambda: torch.ops.aten.convolution_backward(dy, x, weight, list(bias.shape), *arguments, [True, True, True])


def cross_entropy(rows, classes):
    """Loss and gradient of the logits."""
    logits, labels = torch.randn(rows, classes, requires_grad=True), torch.arange(rows) % classes

    def work():
        logits.grad = None
        torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()

    return work


def linear_operands(m, n, k, low):
    dtype = torch.bfloat16 if low else torch.float32
    return (torch.randn(shape).to(dtype) for shape in ((m, k), (n, k), (m, n)))


def linear_forward(m, n, k, low):
    x, weight, y = linear_operands(m, n, k, low)
    return lambda: torch.mm(x, weight.t(), out=y)


def linear_input_gradient(m, n, k, low):
    x, weight, y = linear_operands(m, n, k, low)
    return lambda: torch.mm(y, weight, out=x)


def linear_weight_gradient(m, n, k, low):
    x, weight, y = linear_operands(m, n, k, low)
    return lambda: torch.mm(y.t(), x, out=weight)


def attention_operands(rows, heads, length, width):
    return (torch.randn(rows, heads, length, width, requires_grad=True) for _ in range(3))


def attention_forward(rows, heads, length, width):
    q, k, v = attention_operands(rows, heads, length, width)

    def work():
        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return work


def attention_forward_backward(rows, heads, length, width):
    q, k, v = attention_operands(rows, heads, length, width)
    gradient = torch.randn(rows, heads, length, width)

    def work():
        q.grad = k.grad = v.grad = None
        torch.nn.functional.scaled_dot_product_attention(q, k, v).backward(gradient)

    return work


def ctc(rows, tokens, labels, classes):
    """Log softmax, loss and gradient of the logits."""
    logits = (torch.rand(rows, tokens, classes) * 4 - 2).requires_grad_()
    wanted = torch.tensor([[1 + (r * 31 + i * 7) % (classes - 1) for i in range(labels)] for r in range(rows)])
    lengths, counts = torch.full((rows,), tokens), torch.full((rows,), labels)

    def work():
        logits.grad = None
        each = torch.nn.functional.log_softmax(logits, -1).transpose(0, 1)
        torch.nn.functional.ctc_loss(each, wanted, lengths, counts, reduction="sum").backward()

    return work


def recurrent(is_lstm, rows, length, inputs, width, varied):
    """Forward and backward; time series of varying lengths are packed with pack_padded_sequence."""
    layer = (torch.nn.LSTM if is_lstm else torch.nn.GRU)(inputs, width, batch_first=True)
    x, gradient = torch.rand(rows, length, inputs) - 0.5, torch.rand(rows, length, width) - 0.5
    least = length // 8
    lengths = [least + (length - least) * (r * 37 % rows) // (rows - 1) for r in range(rows)]
    if varied:
        pack = torch.nn.utils.rnn.pack_padded_sequence
        x = pack(x, lengths, batch_first=True, enforce_sorted=False)
        gradient = pack(gradient, lengths, batch_first=True, enforce_sorted=False).data

    def work():
        layer.zero_grad(set_to_none=True)
        y = layer(x)[0]
        (y.data if varied else y).backward(gradient)

    return work


if __name__ == "__main__":
    take_turns(globals()[sys.argv[1]](*map(int, sys.argv[2:])))
