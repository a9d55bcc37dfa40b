# SPDX-License-Identifier: Apache-2.0
"""PyTorch's rows for gpu/kernel_points.cu and gpu/step_points.cu:

    python gpu_points.py kernels|steps eager|compiled SECONDS [PART OF A NAME...]

Prints NAME, WAY, MICROSECONDS, separated by tabs. A kernel has the ways eager (launched by Python) and graph (the same
calls, recorded as one CUDA graph), or compiled and compiled graph. A step has the way eager or compiled (mode
reduce-overhead, which uses CUDA graphs). After SECONDS, the remaining rows are left out; a compilation that has started
is finished, and takes up to 100 s for a large model."""
import sys
import time
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from kernels import zipf_ids
from text_classification import Classifier

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
DEVICE = "cuda"
TYPES = {"float": torch.float32, "bf16": torch.bfloat16}
SIZE_OF = {"float": 4, "bf16": 2}


class Points:
    def __init__(self, how, seconds, parts):
        self.how, self.parts, self.end = how, parts, time.monotonic() + seconds

    def selects(self, *names):
        if time.monotonic() > self.end:
            return False
        return not self.parts or any(part in name for name in names for part in self.parts)

    def compiled(self, function):
        """Compiles a function for the way compiled."""
        return torch.compile(function) if self.how == "compiled" else function

    def measure(self, name, calls):
        """Prints the median over rounds of about 2 ms. `calls` is a function, or a list of functions that are called in
        turn, each with its own memory."""
        if not self.selects(name):
            return
        calls = calls if isinstance(calls, list) else [calls]

        def once():
            for call in calls:
                call()

        try:
            for _ in range(3):
                once()
            repeats = max(1, min(100, int(2 / max(elapsed_ms(once), 1e-3))))
            scale = 1e3 / (repeats * len(calls))
            rounds = sorted(elapsed_ms(lambda: [once() for _ in range(repeats)]) for _ in range(5))
            print(f"{name}\t{self.how}\t{rounds[2] * scale:.2f}", flush=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                for _ in range(repeats):
                    once()
            rounds = sorted(elapsed_ms(graph.replay) for _ in range(6))
            way = "graph" if self.how == "eager" else self.how + " graph"
            print(f"{name}\t{way}\t{rounds[2] * scale:.2f}", flush=True)
        except Exception as error:  # the other rows continue
            print_failed(name, error)


def print_failed(name, error):
    print(f"FAILED\t{name}\t{type(error).__name__}: {error}".splitlines()[0], flush=True)


def elapsed_ms(work):
    """Returns the device's time between the events around work()."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def random(*shape, dtype=torch.float32, gradient=False):
    return (torch.rand(*shape, device=DEVICE) * 2 - 1).to(dtype).requires_grad_(gradient)


def gradients_of(output, inputs):
    """Returns a function that computes the gradients of `output`, repeatedly."""
    of_output = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, inputs, of_output, retain_graph=True)


def without_gradient(function):
    def call():
        with torch.no_grad():
            return function()

    return call


def copies(cold, size):
    """Returns, as Copies in points.cuh, how many copies of `size` bytes exceed the cache several times."""
    return max(2, min(64, int(200e6 / size + 1))) if cold else 1


def copy(points, size, name, cold=False):
    row = "copy " + name + (" cold" if cold else "")
    if points.selects(row):
        pairs = [torch.empty(2, size, dtype=torch.uint8, device=DEVICE) for _ in range(copies(cold, 2 * size))]
        points.measure(row, [lambda pair=pair: pair[1].copy_(pair[0]) for pair in pairs])


def embedding(points, kind):
    forward, backward = "embedding forward " + kind, "embedding backward given plan " + kind
    if not points.selects(forward, backward):
        return
    rows, width, samples, length = 20000, 128, 2048, 128
    ids = zipf_ids(rows, samples * length).reshape(samples, length).to(DEVICE)
    places = torch.arange(length, device=DEVICE)
    token = nn.Embedding(rows, width, device=DEVICE, dtype=TYPES[kind])
    position = nn.Embedding(length, width, device=DEVICE, dtype=TYPES[kind])
    function = points.compiled(lambda: token(ids) + position(places))
    points.measure(forward, without_gradient(function))
    points.measure(backward, gradients_of(function(), [token.weight, position.weight]))


def norm(points, name, kind, rows, width, cold=False, residual=False):
    shape = ("residual " if residual else "") + f"{kind} {rows}x{width}" + (" cold" if cold else "")
    forward, backward = f"{name} forward {shape}", f"{name} backward {shape}"
    if not points.selects(forward, backward):
        return
    dtype = TYPES[kind]
    layer = {"layer_norm": nn.LayerNorm, "rms_norm": nn.RMSNorm}[name](width, eps=1e-5, device=DEVICE, dtype=dtype)

    def joined(x, other):
        return layer(x + F.dropout(other, 0.1)) if residual else layer(x)

    function = points.compiled(joined)
    inputs = [(random(rows, width, dtype=dtype, gradient=True),
               random(rows, width, dtype=dtype, gradient=True) if residual else None)
              for _ in range(copies(cold, (4 if residual else 2) * rows * width * SIZE_OF[kind]))]
    points.measure(forward, [without_gradient(lambda pair=pair: function(*pair)) for pair in inputs])
    points.measure(backward, [gradients_of(function(*pair), [x for x in (*pair, *layer.parameters()) if x is not None])
                              for pair in inputs])


def column_sums(points, kind, rows, width, cold=False):
    row = f"column_sums {kind} {rows}x{width}" + (" cold" if cold else "")
    if points.selects(row):
        function = points.compiled(lambda x: x.sum(0, dtype=torch.float32))
        inputs = [random(rows, width, dtype=TYPES[kind]) for _ in range(copies(cold, rows * width * SIZE_OF[kind]))]
        points.measure(row, [lambda x=x: function(x) for x in inputs])


def linear(points, kind, rows, inner, outer):
    plain, back = f"{kind} {rows}x{inner}x{outer}", f"{kind} {rows}x{outer}x{inner}"
    names = ["linear forward " + plain, "linear backward " + plain, "linear gelu dropout forward " + plain,
             "gelu dropout linear backward " + back]
    if not points.selects(*names):
        return
    dtype = TYPES[kind]
    x, hidden = random(rows, inner, dtype=dtype, gradient=True), random(rows, outer, dtype=dtype, gradient=True)
    up, down = nn.Linear(inner, outer, device=DEVICE, dtype=dtype), nn.Linear(outer, inner, device=DEVICE, dtype=dtype)
    of_up, activated = points.compiled(up), points.compiled(lambda x: F.dropout(F.gelu(up(x)), 0.1))
    through = points.compiled(lambda hidden: down(F.dropout(F.gelu(hidden), 0.1)))
    points.measure(names[0], without_gradient(lambda: of_up(x)))
    points.measure(names[1], gradients_of(of_up(x), [x, *up.parameters()]))
    points.measure(names[2], without_gradient(lambda: activated(x)))
    points.measure(names[3], gradients_of(through(hidden), [hidden, *down.parameters()]))


def cross_entropy(points, kind, classes):
    rows = (1 << 26) // classes
    name = f"cross_entropy forward+backward {kind} {rows}x{classes}"
    if points.selects(name):
        logits = random(rows, classes, dtype=TYPES[kind], gradient=True)
        labels = torch.zeros(rows, dtype=torch.long, device=DEVICE)
        loss = points.compiled(F.cross_entropy)
        points.measure(name, lambda: torch.autograd.grad(loss(logits, labels), logits))


def permute(points, kind, *extents, axes=(0, 2, 1)):
    name = f"permute {kind} {'x'.join(map(str, extents))} {','.join(map(str, axes))}"
    if points.selects(name):
        x = random(*extents, dtype=TYPES[kind])
        points.measure(name, points.compiled(lambda: x.permute(axes).clone(memory_format=torch.contiguous_format)))


def adamw(points, count):
    name = f"adamw {count}"
    if points.selects(name):
        values = random(count, gradient=True)
        values.grad = random(count)
        points.measure(name, torch.optim.AdamW([values], lr=1e-3, fused=True, capturable=True).step)


def attention(points, kind, rows, heads, length, head_width, variant=""):
    shape = f"{kind} {rows}x{heads}x{length}x{head_width}" + (" " + variant if variant else "")
    forward, backward = "attention forward " + shape, "attention backward " + shape
    if not points.selects(forward, backward):
        return
    options = {"is_causal": variant == "causal", "dropout_p": 0.1 if variant == "dropout" else 0.0}
    if variant == "ragged":  # padded to the longest, as in typical PyTorch code
        parts = [(row + 1) * 0.6180339887498949 % 1.0 for row in range(rows)]
        lengths = torch.tensor([int(length / 8 * 8**part) for part in parts], device=DEVICE)
        length = int(lengths.max())
        options["attn_mask"] = (torch.arange(length, device=DEVICE) < lengths[:, None])[:, None, None, :]
    q, k, v = (random(rows, heads, length, head_width, dtype=TYPES[kind], gradient=True) for _ in range(3))
    function = points.compiled(lambda: F.scaled_dot_product_attention(q, k, v, **options))
    points.measure(forward, without_gradient(function))
    points.measure(backward, gradients_of(function(), [q, k, v]))


def kernels(points):
    copy(points, 1 << 30, "1 GiB")
    for cold in (False, True):
        for width in (128, 768, 3072):
            copy(points, 4096 * width * 2, f"bf16 4096x{width}", cold)
    for kind in TYPES:
        embedding(points, kind)
    for kind in TYPES:
        for width in (64, 128, 256, 768, 1024, 4096):
            for name in ("layer_norm", "rms_norm"):
                norm(points, name, kind, (1 << 27) // width // SIZE_OF[kind], width)
                norm(points, name, kind, 2048, width, cold=True)
        for cold in (False, True):
            norm(points, "layer_norm", kind, 4096, 128, cold, residual=True)
            for name in ("layer_norm", "rms_norm"):
                norm(points, name, kind, 4096, 768, cold)
                norm(points, name, kind, 4096, 768, cold, residual=True)
            for rows, width in ((4096, 128), (4096, 768), (4096, 3072), (32768, 768)):
                column_sums(points, kind, rows, width, cold)
    for classes in (1000, 32000):
        for kind in TYPES:
            cross_entropy(points, kind, classes)
    for axes in ((0, 2, 1), (1, 0, 2)):
        for kind in TYPES:
            permute(points, kind, 256, 128, 1024, axes=axes)
    permute(points, "float", 256, 1 << 16, 3)
    adamw(points, 1 << 27)
    adamw(points, 1 << 21)
    for sizes in ((4096, 768, 3072), (4096, 768, 768), (4096, 128, 256)):
        for kind in TYPES:
            linear(points, kind, *sizes)
    attention(points, "float", 32, 4, 128, 32)
    attention(points, "float", 16, 12, 512, 64)
    for sizes in ((32, 4, 128, 32), (256, 4, 128, 32), (16, 12, 512, 64), (4, 12, 2048, 64)):
        attention(points, "bf16", *sizes)
    for head_width in (32, 64, 128):
        for length in (128, 512, 2048):
            for variant in ("", "causal", "ragged", "dropout"):
                if not variant or head_width == 64:
                    attention(points, "bf16", 16384 // length, 768 // head_width, length, head_width, variant)


TEXT_CLASSIFIER = dict(vocabulary=20000, width=128, layers=2, heads=4, feed_forward=256, length=128, batch=32,
                       classes=4, dropout=0.1, norm_first=False, unequal=False)
STEPS = {
    "d128 b32": {},
    "d128 b32 unequal": {"unequal": True},
    "d128 b256": {"batch": 256},
    "d256 b32": {"width": 256, "feed_forward": 512},
    "d256 b256": {"width": 256, "feed_forward": 512, "batch": 256},
    "imdb b128": {"width": 256, "layers": 4, "heads": 8, "feed_forward": 1024, "length": 256, "batch": 128},
    "bert b32": {"vocabulary": 30522, "width": 768, "layers": 12, "heads": 12, "feed_forward": 3072},
}


def step(points, name, kind, sizes):
    o = SimpleNamespace(**{**TEXT_CLASSIFIER, **sizes})
    torch.manual_seed(0)
    model = Classifier(o).to(DEVICE)
    ids = zipf_ids(o.vocabulary, o.batch * o.length).reshape(o.batch, o.length).to(DEVICE)
    labels = torch.arange(o.batch, device=DEVICE) % o.classes
    lengths = None
    if o.unequal:
        parts = [(row + 1) * 0.6180339887498949 % 1.0 for row in range(o.batch)]
        lengths = torch.tensor([int(o.length / 8 * 8**part) for part in parts], device=DEVICE)[:, None]
        ids = ids[:, : int(lengths.max())].contiguous()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def loss():
        with torch.autocast(DEVICE, torch.bfloat16, enabled=kind == "bf16"):
            return F.cross_entropy(model(ids, lengths), labels)

    function = loss if points.how == "eager" else torch.compile(loss, mode="reduce-overhead")

    def one():
        optimizer.zero_grad()
        if points.how != "eager":
            torch.compiler.cudagraph_mark_step_begin()
        value = function()
        value.backward()
        optimizer.step()
        return value.item()  # a trainer logs it

    def microseconds(count):
        start = time.perf_counter()
        for _ in range(count):
            one()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count * 1e6

    print(f"first ten steps {name}\t{points.how}\t{microseconds(10):.2f}", flush=True)
    count = max(5, min(100, int(2e5 / microseconds(3))))
    print(f"step {name}\t{points.how}\t{sorted(microseconds(count) for _ in range(5))[2]:.2f}", flush=True)


def steps(points):
    for name, sizes in STEPS.items():
        for kind in TYPES:
            row = f"{name} {kind}"
            if not points.selects("step " + row):
                continue
            torch.compiler.reset()
            try:
                step(points, row, kind, sizes)
            except Exception as error:  # the other rows continue
                print_failed("step " + row, error)
            torch.cuda.empty_cache()


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    if not torch.cuda.is_available():
        raise SystemExit("gpu_points.py: PyTorch finds no GPU")
    points = Points(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
    with torch.cuda.stream(torch.cuda.Stream()):  # a backward pass runs, and is recorded, on its forward's stream
        {"kernels": kernels, "steps": steps}[sys.argv[1]](points)


if __name__ == "__main__":
    main()
