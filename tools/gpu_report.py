#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a kit's run (`./dev gpu run`) as Markdown:

    gpu_report.py RESULTS REPOSITORY [--write]

RESULTS/report.md has the tables of times and the outcomes of all checks. RESULTS/status.md has the rows of the table of
components in docs/reference/cuda.md, with their status after this run. With --write, report.md also becomes
benchmarks/results/CHIP.md, and the statuses are written to docs/reference/cuda.md."""
import argparse
import csv
import pathlib
import re

WAYS = ["lockstep", "eager", "graph", "compiled", "compiled graph"]

# Components in docs/reference/cuda.md, by the beginning of their rows, with the tests and the checks of the stage
# trainers that their status requires. Other rows keep their status. tests/dev/gpu_kit.sh checks that all of them exist.
COMPONENTS = [
    ("matrix products", ["kernel/gemm/gemm", "kernel/linear/linear", "kernel/linear/detail/summed_products",
                         "kernel/linear/gated_linear", "nn/contrastive/dot_products"]),
    ("attention:", ["kernel/attention/attention", "kernel/detail/tensor_core", "kernel/attention/rotary",
                    "kernel/attention/relative_bias"]),
    ("`LSTM`", ["kernel/recurrent/recurrent"]),
    ("fused embedding", ["kernel/embedding/fused_embedding", "nn/embedding/fused_embedding"]),
    ("`LayerNorm`", ["kernel/normalization/layer_norm", "kernel/normalization/rms_norm",
                     "kernel/normalization/batch_norm", "kernel/normalization/group_norm",
                     "kernel/normalization/l2_normalize", "kernel/normalization/softmax",
                     "kernel/elementwise/elementwise", "kernel/elementwise/binary_operation",
                     "kernel/elementwise/channel_scale", "kernel/elementwise/learned_scale", "kernel/copy/channels",
                     "kernel/random/dropout", "kernel/random/sample_dropout", "kernel/reduction/dot_by_row",
                     "kernel/sequence/arange", "nn/normalization/layer_scale", "nn/contrastive/logit_scale",
                     "nn/random/stochastic_depth", "nn/elementwise/add", "nn/elementwise/multiply",
                     "nn/elementwise/elementwise"]),
    ("pooling over tokens", ["kernel/pooling/pooling", "kernel/pooling/spatial_pooling",
                             "kernel/convolution/upsample", "kernel/sequence/clear_padding",
                             "kernel/sequence/strided_rows", "kernel/attention/relative_bias"]),
    ("maxima over tokens", ["kernel/pooling/pooling", "kernel/convolution/pad", "kernel/convolution/upsample"]),
    ("`log_softmax`", ["kernel/normalization/log_softmax"]),
    ("`permute`", ["kernel/copy/permute", "kernel/convolution/pad", "kernel/convolution/upsample",
                   "kernel/recurrent/recurrent", "kernel/elementwise/elementwise", "kernel/loss/ctc", "parallel/passes",
                   "nn/autograd/variable_of", "nn/autograd/half_precision"]),
    ("`gather_rows`", ["nn/indexing/group_tokens"]),
    ("CTC", ["kernel/loss/ctc"]),
    ("cross entropy", ["kernel/loss/cross_entropy", "kernel/loss/soft_cross_entropy",
                       "kernel/loss/elementwise_loss"]),
    ("SGD, Adam", ["kernel/optimizer/optimizer_step", "kernel/reduction/sum_of_squares", "kernel/reduction/sum",
                   "nn/module/frozen"]),
    ("RMSprop", ["kernel/optimizer/optimizer_step"]),
    ("NAdam", ["kernel/optimizer/optimizer_step", "kernel/optimizer/layerwise_step"]),
    ("convolutions and transposed", ["kernel/convolution/convolution", "kernel/elementwise/channel_bias"]),
    ("weight gradients of convolutions", ["kernel/convolution/detail/long_product"]),
    ("attention in 16 bits by cuDNN", ["kernel/attention/detail/attention_cudnn", "parallel/policy/on_cuda"]),
    ("convolutions in float by cuDNN", ["kernel/convolution/detail/convolution_cudnn"]),
    ("image input", ["kernel/convolution/image_input"]),
    ("`parallel::OnCuda` around", ["parallel/policy/cuda", "parallel/passes", "single", "dp2"]),
    ("`parallel::Reproducible`", ["equal: reproducible"]),
    ("`comm::NcclCommunicator`", ["comm/nccl/nccl_communicator", "nccl1", "nccl2", "equal: two replicas"]),
    ("bfloat16 and float16", ["nn/autograd/half_precision", "bf16"]),
    ("prefetch to the device", ["memory/cuda_prefetcher"]),
    ("CUDA graphs", ["memory/cuda_graph", "memory/cuda_graph_cache", "parallel/passes"]),
]


def lines_of(path):
    return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []


class Results:
    def __init__(self, folder):
        self.folder = folder
        self.machine = [line for line in (folder / "machine.txt").read_text().splitlines() if line]

    def entry(self, name):
        """Returns the rest of the first line of machine.txt that begins with `name`."""
        return next((line[len(name) + 1:] for line in self.machine if line.startswith(name + " ")), "")

    @property
    def chip(self):
        """Returns the GPU's name without vendor and memory, such as H100."""
        words = re.sub(r"NVIDIA|GeForce|Tesla", "", self.entry("gpu").split(",")[0]).split()
        return " ".join(words[:1]) or "GPU"

    @property
    def date(self):
        return self.entry("date").split()[0]

    def outcomes(self, stage):
        """Returns name, outcome, seconds and note of each check."""
        return [(line + [""] * 4)[:4] for line in lines_of(self.folder / (stage + ".tsv"))]

    def rows(self, stage):
        """Returns for each name, in order, a dictionary from ways to their numbers."""
        out = {}
        for name, way, *numbers in lines_of(self.folder / (stage + ".rows")):
            out.setdefault(name, {})[way] = [float(number) for number in numbers]
        return out


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def time_of(ways, way, scale=1.0):
    return number(ways[way][0] * scale) if way in ways else ""


def ratio(ways):
    """Returns PyTorch's best time over Lockstep's."""
    peers = [ways[way][0] for way in WAYS[1:] if way in ways]
    return f"{min(peers) / ways['lockstep'][0]:.2f}" if peers and "lockstep" in ways else ""


def reached(ways, copy_rate):
    """Returns a row's bytes per second as a share of a copy's, or its operations per second."""
    if len(ways.get("lockstep", [])) < 3:
        return ""
    microseconds, size, operations = ways["lockstep"][:3]
    parts = []
    if size and copy_rate:
        parts.append(f"{size / microseconds / copy_rate:.2f}")
    if operations:
        parts.append(f"{operations / microseconds / 1e6:.0f} TFLOP/s")
    return ", ".join(parts)


def kernel_table(rows):
    copy = rows.get("copy 1 GiB", {}).get("lockstep")
    copy_rate = copy[1] / copy[0] if copy else 0
    head = ["case, microseconds", "Lockstep", "of a copy's rate", "eager", "eager, graph", "compiled",
            "compiled, graph", "best PyTorch / Lockstep"]
    return table(head, [[name, time_of(ways, "lockstep"), reached(ways, copy_rate)]
                        + [time_of(ways, way) for way in WAYS[1:]] + [ratio(ways)] for name, ways in rows.items()])


def step_table(rows):
    head = ["case, milliseconds", "Lockstep", "first ten steps", "eager", "compiled", "best PyTorch / Lockstep"]
    return table(head, [[name.removeprefix("step "), time_of(ways, "lockstep", 1e-3),
                         time_of(rows.get("first ten steps " + name.removeprefix("step "), {}), "lockstep", 1e-3),
                         time_of(ways, "eager", 1e-3), time_of(ways, "compiled", 1e-3), ratio(ways)]
                        for name, ways in rows.items() if name.startswith("step ")])


def text_table(rows):
    return table(["case, samples per second", "Lockstep", "eager", "compiled"],
                 [[name] + [time_of(ways, way) for way in ("lockstep", "eager", "compiled")]
                  for name, ways in rows.items()])


def rate_table(rows):
    return table(["trainer, samples per second after the start", "GPU", "CPU"],
                 [[name, time_of(ways, "cuda"), time_of(ways, "host")] for name, ways in rows.items()])


def kernel_name(signature):
    """Returns the function's name and template arguments, without namespaces."""
    short = re.sub(r"\(int\)|\(bool\)|void ", "", signature)
    short = re.sub(r"(?:\w+::|<unnamed>::|\(anonymous namespace\)::)+", "", short)
    return short.split("(")[0][:90]


def profile_table(log, most=25):
    """Returns the kernels of one profiled step, by their total time."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(lines):
        if row.get("ID"):  # the second line has units
            name = kernel_name(row["Kernel Name"])
            count, total = kernels.get(name, (0, 0.0))
            kernels[name] = (count + 1, total + float(row["gpu__time_duration.sum"].replace(",", "")))
    unit = 1e-3 if any(name in line for line in lines[1:2] for name in ("nsecond", '"ns"')) else 1.0
    everything = sum(total for _, total in kernels.values()) or 1
    ranked = sorted(kernels.items(), key=lambda kernel: -kernel[1][1])
    rows = [[f"`{name}`", str(count), number(total * unit), f"{100 * total / everything:.0f} %"]
            for name, (count, total) in ranked[:most]]
    launches = sum(count for count, _ in kernels.values())
    return table(["kernel", "launches", "microseconds", "share"],
                 rows + [["all", str(launches), number(everything * unit), ""]])


def outcome_table(results):
    rows = []
    for stage in ("smoke", "tests", "trainers", "kernels", "steps", "text", "rates", "sanitizer", "profile"):
        outcomes = results.outcomes(stage)
        if not outcomes:
            continue
        counts = {}
        for _, outcome, _, _ in outcomes:
            counts[outcome] = counts.get(outcome, 0) + 1
        bad = [f"`{name}`: {note or outcome}" for name, outcome, _, note in outcomes
               if outcome in ("failed", "timed out")]
        rows.append([stage, ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())),
                     "; ".join(bad).replace("|", "\\|")])
    return table(["stage", "checks", "failed or timed out"], rows)


def report(results):
    parts = [f"# Measurements on one {results.chip}, {results.date}\n",
             "".join(f"- {line}\n" for line in results.machine),
             "Times of kernels are those of the device. A ratio above 1 means that Lockstep is faster than the best of "
             "PyTorch's ways.\n"]
    for title, stage, to_table in (("Kernels", "kernels", kernel_table), ("Training steps", "steps", step_table),
                                   ("End to end", "text", text_table),
                                   ("Other trainers", "rates", rate_table)):
        rows = results.rows(stage)
        if rows:
            parts += [f"## {title}\n", to_table(rows)]
    for log in sorted((results.folder / "profile").glob("*.log")):
        parts += [f"## Kernels of a step: {log.stem.removeprefix('step ')}\n", profile_table(log)]
    return "\n".join(parts + ["## Checks\n", outcome_table(results)])


def status_of(results, required):
    """Returns a component's status after a run, or None if one of its checks did not run."""
    checks = {name: outcome for stage in ("tests", "trainers") for name, outcome, _, _ in results.outcomes(stage)}
    outcomes = [checks.get(name, "left out") for name in required]
    if any(outcome in ("skipped", "left out") for outcome in outcomes):
        return None
    failed = [name for name, outcome in zip(required, outcomes) if outcome != "passed"]
    status = f"{results.chip}, {results.date}"
    return status + ", except " + ", ".join(f"`{name}`" for name in failed) if failed else status


def with_statuses(page, results):
    """Returns the page docs/reference/cuda.md with new statuses, and its changed rows."""
    out, changed = [], []
    for line in page.splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        required = next((required for name, required in COMPONENTS if line.startswith("| " + name)), None)
        status = status_of(results, required) if required and len(cells) == 5 else None
        if status:
            line = "|".join([cells[0], cells[1], f" {status} ", *cells[3:]])
            changed.append(line)
        out.append(line)
    return "\n".join(out) + "\n", changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="folder that gpu run wrote")
    parser.add_argument("repository", type=pathlib.Path, help="checkout whose pages the tables are for")
    parser.add_argument("--write", action="store_true", help="also write to the checkout")
    options = parser.parse_args()
    results = Results(options.results)
    text = report(results)
    page = options.repository / "docs/reference/cuda.md"
    new_page, changed = with_statuses(page.read_text(), results)
    (options.results / "report.md").write_text(text)
    (options.results / "status.md").write_text("\n".join(changed) + "\n")
    if options.write:
        (options.repository / f"benchmarks/results/{results.chip.lower()}.md").write_text(text)
        page.write_text(new_page)
    print(text)
    print(f"{len(changed)} components have a new status: {options.results / 'status.md'}")


if __name__ == "__main__":
    main()
