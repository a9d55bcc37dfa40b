# SPDX-License-Identifier: Apache-2.0
"""Writes layers.json, losses.json, spaces.json, optimizers.json, recurrent.json, ctc.json, groups.json, upsampling.json,
rotary.json, convolutions.json, image_padding.json, linear_upsampling.json, rmsprop.json, pooling.json,
activations.json, adagrad_nadam.json, adaptive_pooling.json, lamb.json and muon.json: PyTorch's results, in float64, for
small inputs.

python tests/golden/generate.py [FOLDER]     (needs PyTorch 2.9 or later; the files are equal on every machine up to
                                              the last digits)

Inputs and parameters are multiples of 1/16 or 1/32, so they are exact in float32 and bfloat16. "bfloat16" is the error of PyTorch
with everything in that type: the roots of the mean squares over the output, and over all gradients together. Names are
this library's.
"""
import importlib
import json
import pathlib
import sys

import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(7)


def draw(*shape):
    return torch.randint(-16, 17, shape, generator=generator).double() / 16


def dump(tensor):
    return {"shape": list(tensor.shape), "data": tensor.detach().double().flatten().tolist()}


def fill(module):
    """Sets arbitrary parameters, with scales of norms near 1."""
    for name, parameter in module.named_parameters():
        near_one = "norm" in name and "weight" in name or isinstance(module, torch.nn.RMSNorm | torch.nn.LayerNorm)
        with torch.no_grad():
            parameter.copy_(draw(*parameter.shape) / 2 + (1 if near_one and name.endswith("weight") else 0))
    return module


def split_attention(name, tensor):
    """PyTorch keeps query, key and value in one tensor."""
    prefix, last = name.rsplit("in_proj_", 1)
    return [(f"{prefix}{part}.{last}", piece) for part, piece in zip(("query", "key", "value"), tensor.chunk(3))]


def named(module, rename):
    """Yields (name in this library, value, gradient) of each parameter."""
    for name, parameter in module.named_parameters():
        for old, new in rename.items():
            name = name.replace(old, new)
        if "in_proj_" in name:
            pieces = zip(split_attention(name, parameter), split_attention(name, parameter.grad))
            for (part, value), (_, gradient) in pieces:
                yield part, value, gradient
        else:
            yield name.replace("out_proj", "output"), parameter, parameter.grad


def padding(lengths, length):
    return torch.arange(length)[None, :] >= torch.tensor(lengths)[:, None]


def off(pairs):
    differences = [(rounded.detach().double() - exact.detach()).flatten() for rounded, exact in pairs]
    return float(f"{torch.cat(differences).square().mean().sqrt().item():.4g}")


def in_bfloat16(module, run):
    """Calls run() with the module's parameters, and their gradients, in bfloat16; the module is unchanged afterwards."""
    kept = [parameter.grad for parameter in module.parameters()]
    module.zero_grad()
    module.bfloat16()
    result = run()
    module.double()
    for parameter, gradient in zip(module.parameters(), kept):
        parameter.grad = gradient
    return result


def case(name, module, run, inputs, rename={}, lengths=None, length=None, **more):
    """Returns the gradients of sum(weights * output); padding has the weight 0."""
    leaves = {key: draw(*shape).requires_grad_() for key, shape in inputs.items()}
    output = run(*leaves.values())
    weights = draw(*output.shape)
    if lengths is not None:
        weights[padding(lengths, length)] = 0
    (output * weights).sum().backward()
    values, gradients = {}, {}
    for key, leaf in leaves.items():
        values[key], gradients[key] = dump(leaf), dump(leaf.grad)
    for key, value, gradient in named(module, rename):
        values[key], gradients[key] = dump(value), dump(gradient)

    def errors():
        low = {key: leaf.detach().bfloat16().requires_grad_() for key, leaf in leaves.items()}
        rounded = run(*low.values())
        (rounded * weights.bfloat16()).sum().backward()
        counted = slice(None) if lengths is None else ~padding(lengths, length)
        found = {key: leaf.grad for key, leaf in low.items()} | {key: g for key, _, g in named(module, rename)}
        exact = {key: torch.tensor(each["data"]).view(each["shape"]) for key, each in gradients.items()}
        return {"output": off([(rounded[counted], output[counted])]),
                "gradients": off([(found[key], exact[key]) for key in found])}

    result = {"name": name, "values": values, "weights": dump(weights), "output": dump(output), "gradients": gradients,
              "bfloat16": in_bfloat16(module, errors)}
    if lengths is not None:
        result |= {"lengths": lengths, "length": length}
    return result | more


def layers():
    rows, length, width, heads, inner = 3, 5, 6, 2, 7
    lengths, shape = [5, 1, 3], (3, 5, 6)
    mask, later = padding(lengths, length), torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
    common = dict(lengths=lengths, length=length)

    linear = fill(torch.nn.Linear(5, 3))
    yield case("linear", linear, linear, {"input": (4, 5)})
    norm = fill(torch.nn.LayerNorm(width))
    yield case("layer_norm", norm, norm, {"input": (4, width)})
    norm = fill(torch.nn.RMSNorm(width, eps=1e-6))
    yield case("rms_norm", norm, norm, {"input": (4, width)})
    yield case("gelu", torch.nn.Identity(), F.gelu, {"input": (4, width)})

    parts = torch.nn.Linear(width, inner), torch.nn.GELU(), torch.nn.Linear(inner, width)
    feed_forward = fill(torch.nn.Sequential(*parts))
    yield case("feed_forward", feed_forward, feed_forward, {"input": shape}, {"0.": "first.", "2.": "second."},
               **common)
    gated = fill(torch.nn.ModuleDict({k: torch.nn.Linear(*s) for k, s in
                                      {"gate": (width, inner), "up": (width, inner), "down": (inner, width)}.items()}))
    yield case("gated_feed_forward", gated, lambda x: gated["down"](F.gelu(gated["gate"](x)) * gated["up"](x)),
               {"input": shape}, **common)

    attention = fill(torch.nn.MultiheadAttention(width, heads, batch_first=True))
    for name, causal in ("attention", None), ("causal_attention", later):
        attention.zero_grad()
        yield case(name, attention, lambda x: attention(x, x, x, key_padding_mask=mask, attn_mask=causal)[0],
                   {"input": shape}, **common)
    attention.zero_grad()
    memory_lengths = [4, 2, 1]
    memory = dict(memory_lengths=memory_lengths, memory_length=4)
    yield case("cross_attention", attention,
               lambda x, m: attention(x, m, m, key_padding_mask=padding(memory_lengths, 4))[0],
               {"input": shape, "memory": (rows, 4, width)}, **common, **memory)

    parts = {"self_attn": "attention", "multihead_attn": "cross_attention", "linear1": "feed_forward.first",
             "linear2": "feed_forward.second"}
    encoder_parts = parts | {"norm1": "attention_norm", "norm2": "feed_forward_norm"}
    decoder_parts = parts | {"norm1": "attention_norm", "norm2": "cross_attention_norm", "norm3": "feed_forward_norm"}
    for suffix, first in ("", False), ("_norm_first", True):
        options = dict(dim_feedforward=inner, dropout=0.0, activation="gelu", batch_first=True, norm_first=first)
        encoder = fill(torch.nn.TransformerEncoderLayer(width, heads, **options))
        yield case("encoder_layer" + suffix, encoder, lambda x: encoder(x, src_key_padding_mask=mask), {"input": shape},
                   encoder_parts, **common)
        decoder = fill(torch.nn.TransformerDecoderLayer(width, heads, **options))
        yield case("decoder_layer" + suffix, decoder,
                   lambda x, m: decoder(x, m, tgt_mask=later, tgt_key_padding_mask=mask,
                                        memory_key_padding_mask=padding(memory_lengths, 4)),
                   {"input": shape, "memory": (rows, 4, width)}, decoder_parts, **common, **memory)

    ids = torch.tensor([[1, 3, 3, 0, 6], [2, 0, 0, 0, 0], [3, 3, 5, 0, 0]])
    tables = fill(torch.nn.ModuleDict({"token": torch.nn.Embedding(7, width), "position": torch.nn.Embedding(6, width),
                                       "norm": torch.nn.LayerNorm(width)}))
    plain = lambda: tables["token"](ids) + tables["position"](torch.arange(length))
    rename = {"token.weight": "token", "position.weight": "position"}
    without_norm = torch.nn.ModuleDict({key: tables[key] for key in ("token", "position")})
    for name, module, run in (("embedding", without_norm, plain),
                              ("embedding_norm", tables, lambda: tables["norm"](plain()))):
        tables.zero_grad()
        yield case(name, module, run, {}, rename, **common, ids=ids.flatten().tolist())


def losses():
    rows, classes = 5, 4
    labels = torch.tensor([0, 3, 1, -100, 3])
    weights = torch.tensor([0.5, 2.0, 1.0, 0.25])
    for name, options in {
        "plain": {}, "weights": {"weight": weights}, "smoothing": {"label_smoothing": 0.1},
        "all": {"weight": weights, "label_smoothing": 0.1},
    }.items():
        for size in classes, 20:
            logits = (draw(rows, size) * 4).requires_grad_()
            chosen = dict(options)
            if "weight" in options and size != classes:
                chosen["weight"] = weights.repeat(size // classes)
            total = F.cross_entropy(logits, labels, reduction="sum", **chosen)
            total.backward()
            mean = F.cross_entropy(logits.detach(), labels, **chosen)
            low = logits.detach().bfloat16().requires_grad_()
            in_low = chosen | ({"weight": chosen["weight"].bfloat16()} if "weight" in chosen else {})
            F.cross_entropy(low, labels, reduction="sum", **in_low).backward()
            yield {"name": f"cross_entropy {name} {size}", "logits": dump(logits), "labels": labels.tolist(),
                   "class_weights": chosen["weight"].tolist() if "weight" in chosen else [],
                   "label_smoothing": chosen.get("label_smoothing", 0.0), "ignored": -100,
                   "sum": total.item(), "mean": mean.item(), "gradient": dump(logits.grad),
                   "bfloat16": off([(low.grad, logits.grad)])}
    prediction, target = draw(rows, classes).requires_grad_(), draw(rows, classes)
    total = F.mse_loss(prediction, target, reduction="sum")
    total.backward()
    low = prediction.detach().bfloat16().requires_grad_()
    F.mse_loss(low, target.bfloat16(), reduction="sum").backward()
    yield {"name": "mean_squared_error", "prediction": dump(prediction), "target": dump(target), "sum": total.item(),
           "mean": F.mse_loss(prediction, target).item(), "gradient": dump(prediction.grad),
           "bfloat16": off([(low.grad, prediction.grad)])}


def channels_last(tensor):
    return tensor.movedim(1, -1)


def space_case(name, module, run, shape, **more):
    """Converts [rows, channels, extent...] to [rows, extent..., channels]."""
    x = draw(*shape).requires_grad_()
    output = run(x)
    weights = draw(*output.shape)
    (output * weights).sum().backward()
    values = {key: dump(parameter) for key, parameter in module.named_parameters()}
    gradients = {key: parameter.grad for key, parameter in module.named_parameters()} | {"input": x.grad}
    buffers = {key: dump(b) for key, b in module.named_buffers() if "tracked" not in key}

    def errors():
        low = x.detach().bfloat16().requires_grad_()
        rounded = run(low)
        (rounded * weights.bfloat16()).sum().backward()
        found = {key: parameter.grad for key, parameter in module.named_parameters()} | {"input": low.grad}
        return {"output": off([(rounded, output)]),
                "gradients": off([(found[key], gradients[key]) for key in found])}

    return {"name": name, "values": values | {"input": dump(channels_last(x))},
            "weights": dump(channels_last(weights)), "output": dump(channels_last(output)),
            "gradients": {key: dump(channels_last(g) if key == "input" else g) for key, g in gradients.items()},
            "buffers": buffers, "bfloat16": in_bfloat16(module, errors)} | more


def spaces():
    """Convolutions, BatchNorm and pooling."""
    for dims, extent in (1, (7,)), (2, (5, 4)), (3, (4, 3, 3)):
        module = fill(getattr(torch.nn, f"Conv{dims}d")(2, 3, 3, stride=2, padding=1))
        yield space_case(f"convolution_{dims}d", module, module, (2, 2, *extent))
    module = fill(torch.nn.BatchNorm2d(3))
    yield space_case("batch_norm", module, module, (2, 3, 3, 2))
    yield space_case("largest_pool", torch.nn.Identity(), lambda x: F.max_pool2d(x, 2), (2, 2, 5, 4))
    yield space_case("average_pool", torch.nn.Identity(), lambda x: F.avg_pool2d(x, 2), (2, 2, 5, 4))


def steps_of(makers, steps=4, shape=(6,)):
    for name, make in makers.items():
        values = draw(*shape)
        parameter = torch.nn.Parameter(values.clone())
        optimizer = make([parameter])
        gradients, after = [], []
        for _ in range(steps):
            parameter.grad = draw(*shape)
            gradients.append(parameter.grad.flatten().tolist())
            optimizer.step()
            after.append(parameter.detach().flatten().tolist())
        yield {"name": name, "values": values.flatten().tolist(), "gradients": gradients, "after": after}


def optimizers():
    return steps_of({
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
        "sgd momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        "sgd nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.01),
    })


def recurrent():
    lengths, length, width = [5, 1, 3], 5, 6

    def run(layer, turned):
        def each(x):
            rows = []
            for row, count in zip(x, lengths):
                tokens = row[:count].flip(0) if turned else row[:count]
                y = layer(tokens)[0]
                rows.append(F.pad(y.flip(0) if turned else y, (0, 0, 0, length - count)))
            return torch.stack(rows)
        return each

    rename = {f"{kind}_{part}_l0": f"{name}.{kind}" for kind in ("weight", "bias")
              for part, name in (("ih", "input"), ("hh", "hidden"))}
    for name, make in ("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU):
        for turned in False, True:
            layer = fill(make(width - 1, width, batch_first=True))
            yield case(name + ("_backward" if turned else ""), layer, run(layer, turned), {"input": (3, length, width - 1)},
                       rename, lengths=lengths, length=length)


def ctc():
    lengths, length, classes, counts = [9, 4, 1, 6], 9, 5, [3, 2, 1, 0]
    for blank in 0, 4:
        labels = torch.tensor([1, 1, 3, 2, 1, 3])
        logits = (draw(len(lengths), length, classes) * 4).requires_grad_()

        def loss(x, number):
            each = F.log_softmax(x, -1).to(number).transpose(0, 1)
            return F.ctc_loss(each, labels, torch.tensor(lengths), torch.tensor(counts), blank=blank, reduction="sum")

        total = loss(logits, torch.float64)
        total.backward()
        low = logits.detach().bfloat16().requires_grad_()
        loss(low, torch.float32).backward()
        yield {"name": f"ctc, blank {blank}", "logits": dump(logits.flatten(0, 1)), "lengths": lengths, "length": length,
               "labels": labels.tolist(), "label_lengths": counts, "blank": blank, "sum": total.item(),
               "mean": total.item() / len(lengths), "gradient": dump(logits.grad.flatten(0, 1)),
               "bfloat16": off([(low.grad, logits.grad)])}


def groups():
    for count, channels in (1, 4), (2, 6), (3, 3):
        module = fill(torch.nn.GroupNorm(count, channels))
        yield space_case(f"group_norm_{count}", module, module, (2, channels, 3, 2))


def upsampling():
    """Layers whose outputs are larger than their inputs."""
    for dims, extent in (1, (5,)), (2, (3, 2)), (3, (2, 1, 2)):
        layer = getattr(torch.nn, f"ConvTranspose{dims}d")
        module = fill(layer(2, 3, 2, stride=2))
        yield space_case(f"transposed_convolution_{dims}d", module, module, (2, 2, *extent))
        module = fill(layer(3, 2, 4, stride=3, padding=1, output_padding=2))
        yield space_case(f"transposed_convolution_{dims}d_padded", module, module, (2, 3, *extent))
    yield space_case("upsample", torch.nn.Identity(), torch.nn.Upsample(scale_factor=(2, 3)), (2, 2, 3, 4))


class Rotary(torch.nn.Module):
    """Causal attention with rotary positions, as in transformers.models.llama: heads share keys and values."""

    def __init__(self, width, heads, key_heads, base):
        super().__init__()
        self.head_width, self.base = width // heads, base
        self.query, self.output = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.key, self.value = (torch.nn.Linear(width, key_heads * self.head_width) for _ in range(2))

    def turn(self, x):
        half, places = self.head_width // 2, torch.arange(x.shape[2]).double()
        angles = torch.outer(places, self.base ** (-torch.arange(half).double() / half))
        cosines, sines = (torch.cat([f(angles)] * 2, -1).to(x.dtype) for f in (torch.cos, torch.sin))
        return x * cosines + torch.cat([-x[..., half:], x[..., :half]], -1) * sines

    def forward(self, x):
        query, key, value = (part(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
                             for part in (self.query, self.key, self.value))
        sharers = query.shape[1] // key.shape[1]
        key, value = (part.repeat_interleave(sharers, 1) for part in (self.turn(key), value))
        mixed = F.scaled_dot_product_attention(self.turn(query), key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


def rotary():
    lengths = [5, 1, 3]
    for name, key_heads in ("rotary", 2), ("rotary_shared", 1):
        layer = fill(Rotary(8, 2, key_heads, 100.0))
        yield case(name, layer, layer, {"input": (3, 5, 8)}, lengths=lengths, length=5)


def convolutions():
    """Convolutions that are grouped (down to single channels), dilated, causal and transposed."""
    module = fill(torch.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(2, 1), groups=2))
    yield space_case("grouped", module, module, (2, 4, 6, 5))
    module = fill(torch.nn.Conv2d(3, 3, 3, padding=1, groups=3))
    yield space_case("depthwise", module, module, (2, 3, 5, 4))
    module = fill(torch.nn.Conv1d(2, 3, 3, dilation=2))
    yield space_case("causal", module, lambda x: module(F.pad(x, (4, 0))), (2, 2, 7))
    module = fill(torch.nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 1), padding=(2, 1), output_padding=(1, 0),
                                           dilation=(2, 3), groups=2))
    yield space_case("transposed_grouped", module, module, (2, 4, 3, 4))
    module = fill(torch.nn.ConvTranspose1d(3, 3, 3, stride=2, dilation=2, groups=3))
    yield space_case("transposed_depthwise", module, module, (2, 3, 5))


def image_padding():
    """Padding with the values of the input; {2, 1} positions before its two axes and {0, 3} after them."""
    for mode in "circular", "reflect", "replicate":
        yield space_case(mode, torch.nn.Identity(), lambda x: F.pad(x, (1, 3, 2, 0), mode=mode), (2, 2, 3, 4))


def linear_upsampling():
    for mode, factor, extent in ("linear", 3, (4,)), ("bilinear", (2, 3), (3, 4)), ("trilinear", (1, 2, 4), (2, 3, 2)):
        upsample = torch.nn.Upsample(scale_factor=factor, mode=mode, align_corners=False)
        yield space_case(mode, torch.nn.Identity(), upsample, (2, 2, *extent))


def rmsprop():
    return steps_of({
        "rmsprop": lambda p: torch.optim.RMSprop(p, weight_decay=0.01),
        "rmsprop momentum": lambda p: torch.optim.RMSprop(p, alpha=0.9, momentum=0.9, weight_decay=0.01),
    })


def pooling():
    """Pooling with a last window beyond the input, and means that do not count padding."""
    def pooled(name, pool, shape, *window, **options):
        return space_case(name, torch.nn.Identity(), lambda x: pool(x, *window, **options), shape)

    shape, window = (2, 2, 6, 5), ((3, 2), (2, 3), (1, 1))
    yield pooled("max", F.max_pool2d, shape, *window, ceil_mode=True)
    yield pooled("padded", F.avg_pool2d, shape, *window, ceil_mode=True)
    yield pooled("elements", F.avg_pool2d, shape, *window, ceil_mode=True, count_include_pad=False)
    yield pooled("elements_floor", F.avg_pool2d, shape, *window, count_include_pad=False)
    yield pooled("small", F.avg_pool1d, (2, 2, 2), 3, 2, ceil_mode=True)


def activations():
    """Feed-forward parts with other activations than gelu."""
    length, width, inner = 5, 6, 7
    lengths = [5, 1, 3, 4, 2, 5, 5, 3]
    common, shape = dict(lengths=lengths, length=length), (len(lengths), length, width)
    for name, activate in ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("silu", F.silu):
        plain = fill(torch.nn.ModuleDict({"first": torch.nn.Linear(width, inner), "second": torch.nn.Linear(inner, width)}))
        yield case("feed_forward_" + name, plain, lambda x: plain["second"](activate(plain["first"](x))),
                   {"input": shape}, **common)
        gated = fill(torch.nn.ModuleDict({key: torch.nn.Linear(*size) for key, size in
                                          {"gate": (width, inner), "up": (width, inner), "down": (inner, width)}.items()}))
        yield case("gated_feed_forward_" + name, gated, lambda x: gated["down"](activate(gated["gate"](x)) * gated["up"](x)),
                   {"input": shape}, **common)


def adagrad_nadam():
    return steps_of({
        "adagrad": lambda p: torch.optim.Adagrad(p),
        "adagrad settings": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.01,
                                                          initial_accumulator_value=0.5),
        "nadam": lambda p: torch.optim.NAdam(p),
        "nadam coupled": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.01, momentum_decay=0.1),
        "nadam decoupled": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.01, decoupled_weight_decay=True),
    }, steps=20)


def adaptive_pooling():
    """Pooling into windows of unequal widths."""
    for kind, pool in ("average", "avg"), ("max", "max"):
        for dims, extent, windows in (1, (8,), (3,)), (2, (10, 5), (7, 4)), (3, (3, 4, 5), (2, 1, 6)):
            module = getattr(F, f"adaptive_{pool}_pool{dims}d")
            yield space_case(f"{kind}_{dims}d", torch.nn.Identity(), lambda x: module(x, windows), (2, 2, *extent))


class LAMB(torch.optim.Optimizer):
    """Algorithm 2 of You and others, arXiv:1904.00962v5, with phi(z) = z. PyTorch has no LAMB."""

    def __init__(self, parameters, **options):
        super().__init__(parameters, dict(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.01) | options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state.update(t=0, m=torch.zeros_like(x), v=torch.zeros_like(x))
                state["t"] += 1
                state["m"] = group["beta1"] * state["m"] + (1 - group["beta1"]) * x.grad
                state["v"] = group["beta2"] * state["v"] + (1 - group["beta2"]) * x.grad**2
                m = state["m"] / (1 - group["beta1"] ** state["t"])
                v = state["v"] / (1 - group["beta2"] ** state["t"])
                update = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * x
                x -= group["lr"] * x.norm() / update.norm() * update


def lamb():
    return steps_of({"lamb": lambda p: LAMB(p, lr=0.02), "lamb settings": lambda p: LAMB(p, lr=0.05, beta1=0.8,
                                                                                        weight_decay=0.1)}, steps=20)


def newton_schulz(update, coefficients, steps, eps):
    """The formula of torch.optim.Muon, which rounds to bfloat16, in the precision of its argument."""
    a, b, c = coefficients
    x = update.T if update.size(0) > update.size(1) else update
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if update.size(0) > update.size(1) else x


def muon():
    module = importlib.import_module("torch.optim._muon")
    module._zeropower_via_newtonschulz = newton_schulz
    heavy_ball = dict(lr=0.02, momentum=0.8, nesterov=False, weight_decay=0.05, adjust_lr_fn="match_rms_adamw")
    cubic = dict(lr=0.1, weight_decay=0, ns_coefficients=(1.5, -0.5, 0.0), ns_steps=7, eps=2.0,
                 adjust_lr_fn="spectral_unclamped")
    for name, shape, options in (("muon", (3, 5), {}), ("muon tall", (5, 3), {}), ("muon square", (4, 4), {}),
                                 ("muon settings", (2, 6), heavy_ball), ("muon cubic", (6, 3), cubic)):
        for case in steps_of({name: lambda p: torch.optim.Muon(p, **options)}, 20, shape):
            yield {"shape": shape} | case


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for make in layers, losses, spaces, optimizers, recurrent, ctc, groups, upsampling, rotary, convolutions, image_padding, linear_upsampling, rmsprop, pooling, activations, adagrad_nadam, adaptive_pooling, lamb, muon:
        cases = list(make())
        text = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        version = torch.__version__.split("+")[0]
        (folder / f"{make.__name__}.json").write_text(f'{{"torch":"{version}","cases":[\n{text}\n]}}\n')
