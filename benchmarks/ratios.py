#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of benchmarks to their peers, from Google Benchmark's JSON.

usage: ratios.py [--csv FILE] [--plots FOLDER] FOLDER|FILE.json...

A file below FOLDER is named after its benchmark program, for example FOLDER/data/collate/collate.json. The table and
the CSV file have the columns benchmark, case, peer, ratio, low and high. A ratio above 1 means that Lockstep is faster
(or smaller, for the counters of COSTS); low and high are the quartiles.

- The peer of a benchmark has its name and the part `peer:NAME`. Engines (`engine:NAME`) of one case have peers in common.
- A pair is a run of ours and a run of the peer that are near in time; each run is in one pair at most. The ratio is the
  median over pairs.
- main.cpp measures a cache line's round trip between two cores before and after each run. A virtual machine may switch
  between cores that share a cache and cores that do not, and then runs at half or double speed. Runs with unequal round
  trips are dropped (counter `disturbed`), and no pair has runs with unequal ones.
- Fewer than three pairs give no ratio, and a line that says so; benchmarks of one iteration that count are exact, need one
  pair, and are never dropped.
"""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys

# Counters where less is better, and the words that stand for them in a case's name.
COSTS = {
    "processor_seconds": "processor time",
    "peak_bytes": "peak memory",
    "instructions": "instructions",
    "padding": "padding",
}
APPENDED = re.compile(r"/(manual_time|real_time|process_time|iterations:\d+|repeats:\d+|min_time:[^/]*)(?=/|$)")
ROUND_TRIPS_AGREE = 1.5


class Benchmark:
    """The undisturbed runs of one benchmark."""

    def __init__(self, name):
        self.name, self.runs, self.disturbed, self.reasons = name, [], [], set()
        match = re.search(r"/peer:([^/]+)", name)
        self.peer = match and match[1]
        self.whose = re.sub(r"/peer:[^/]+", "", name)
        self.case = re.sub(r"/engine:[^/]+", "", self.whose)

    def add(self, run):
        if run.get("error_occurred") or run.get("skipped"):
            self.reasons.add(run.get("error_message") or run.get("skip_message") or "no reason given")
        elif run.get("disturbed"):
            self.disturbed.append(run)
        else:
            self.runs.append(run)


def read(path):
    """Returns the benchmarks of a file by their names, without what Google Benchmark appends to names."""
    with open(path) as file:
        contents = json.load(file)
    benchmarks = {}
    for run in contents["benchmarks"]:
        if run.get("run_type") == "aggregate":
            continue
        name = APPENDED.sub("", run["name"])
        benchmarks.setdefault(name, Benchmark(name)).add(run)
    return contents["context"], benchmarks


def seconds(run):
    """Returns the time of an iteration that the benchmark's rates refer to."""
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[run["time_unit"]]
    by_wall = re.search(r"/(manual_time|real_time)(/|$)", run["name"])
    return scale * run["real_time" if by_wall else "cpu_time"]


def speeds(run, other):
    """Returns (what is compared, ours, theirs) for each measure that both runs have; larger is better."""
    found = []
    if not run.get("counts_only"):
        for rate in ("items_per_second", "bytes_per_second"):
            if rate in run and rate in other:
                found.append((None, run[rate], other[rate]))
                break
        else:
            if seconds(run) > 0 and seconds(other) > 0:
                found.append((None, 1 / seconds(run), 1 / seconds(other)))
    for counter, words in COSTS.items():
        if run.get(counter) and other.get(counter):
            work = [each.get("items_per_second", 0) * seconds(each) or 1 for each in (run, other)]
            found.append((words, work[0] / run[counter], work[1] / other[counter]))
    return found


def agree(run, other):
    """Returns whether the machine was in one state during both runs."""
    a, b = run.get("round_trip_ns", 0), other.get("round_trip_ns", 0)
    return a <= ROUND_TRIPS_AGREE * b and b <= ROUND_TRIPS_AGREE * a


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def ratios_of(ours, theirs, exact):
    """Returns {what: ratios of the pairs}. Exact counts do not depend on the machine's state."""
    mine = ours.runs + (ours.disturbed if exact else [])
    its = theirs.runs + (theirs.disturbed if exact else [])
    near = sorted((abs(a.get("started_s", 0) - b.get("started_s", 0)), i, j)
                  for i, a in enumerate(mine) for j, b in enumerate(its) if exact or agree(a, b))
    ratios, paired, paired_others = {}, set(), set()
    for _, i, j in near:
        if i in paired or j in paired_others:
            continue
        paired.add(i)
        paired_others.add(j)
        for what, ours_is, theirs_is in speeds(mine[i], its[j]):
            ratios.setdefault(what, []).append(ours_is / theirs_is)
    return ratios


def pairs_of(benchmarks):
    """Returns (ours, theirs) for each peer of each benchmark."""
    for theirs in benchmarks.values():
        if not theirs.peer:
            continue
        for ours in benchmarks.values():
            if not ours.peer and theirs.whose in (ours.whose, ours.case):
                yield ours, theirs


def rows_of(program, benchmarks):
    """Returns rows of the CSV file, and lines that state what is missing."""
    rows, missing = [], []
    compared = {theirs.name for _, theirs in pairs_of(benchmarks)}
    missing += [f"{name}: there is no run of {each.whose}" for name, each in benchmarks.items()
                if each.peer and name not in compared]
    for ours, theirs in pairs_of(benchmarks):
        absent = [each for each in (ours, theirs) if not each.runs + each.disturbed and each.reasons]
        if absent:
            missing += [f"{each.name}: {', '.join(each.reasons)}" for each in absent]
            continue
        exact = all(run.get("iterations") == 1 and run.get("counts_only") for run in ours.runs + ours.disturbed)
        ratios = ratios_of(ours, theirs, exact)
        pairs = min([len(ours.runs), len(theirs.runs), *map(len, ratios.values())])
        if not ratios or pairs < 3 and not exact:
            missing.append(f"{ours.name} against {theirs.peer}: no ratio: fewer than 3 pairs of runs; the machine "
                           f"changed its state in {len(ours.disturbed)} and {len(theirs.disturbed)} runs")
            continue
        for what, values in ratios.items():
            case = ours.name + (f", {what}" if what else "")
            speeds_text = ("", "") if what else (shown(ours), shown(theirs))
            quartiles = [quantile(values, share) for share in (0.5, 0.25, 0.75)]
            rows.append([program, case, theirs.peer, *quartiles, len(values), *speeds_text])
    return rows, missing


def shown(benchmark):
    """Returns the median speed of a benchmark for the table: time, and bandwidth or items per second."""
    text = time_text(median_of(benchmark, seconds))
    for counter, unit in (("algbw", "B/s"), ("bytes_per_second", "B/s"), ("items_per_second", "/s")):
        speed = median_of(benchmark, lambda run: run.get(counter))
        if speed:
            power = max((p for p in range(5) if speed >= 1000**p), default=0)
            return f"{text} {speed / 1000**power:.3g} {['', 'k', 'M', 'G', 'T'][power]}{unit}"
    return text


def time_text(value):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def median_of(benchmark, value):
    values = [value(run) for run in benchmark.runs if value(run) is not None]
    return quantile(values, 0.5) if values else None


# Programs with a plot of size against bandwidth: the cases in it, the size of a run, and its bandwidth.
PLOTS = {
    "comm/collectives/all_reduce": (
        re.compile(r"all_reduce/bytes:(\d+)/ranks:(?P<panel>\d+)"), "ranks", "bytes per rank",
        lambda run, match: float(match[1]), lambda run: run.get("algbw"), "algbw, GB/s"),
    "data/collate/collate": (
        re.compile(r"collate/tokens/batch:\d+/threads:(?P<panel>\d+)"), "threads", "bytes of a batch",
        lambda run, match: run.get("batch_bytes"), lambda run: run.get("bytes_per_second"), "GB/s"),
}


COLOURS = ("#0060b0", "#888888", "#d05010", "#208040", "#8040a0")


def rank_of(title):
    """Returns the place of a series in the legend: Lockstep, the roof, peers."""
    known = ("lockstep", "roof", "pytorch", "openmpi")
    return known.index(title.split()[0]) if title.split()[0] in known else len(known)


def plot(program, benchmarks, folder):
    """Draws FOLDER/<program>.svg with gnuplot, a panel for each number of ranks or threads."""
    pattern, unit, x_label, size, bandwidth, y_label = PLOTS[program]
    panels = {}
    for each in benchmarks.values():
        match = pattern.match(each.name)
        if not match or not each.runs:
            continue
        engine = re.search(r"/engine:([^/]+)", each.name)
        title = " ".join(filter(None, (each.peer or "lockstep", engine and engine[1])))
        x = median_of(each, lambda run: size(run, match))
        y = median_of(each, bandwidth)
        if x and y:
            panels.setdefault(int(match["panel"]), {}).setdefault(title, []).append((x, y * 1e-9))
    if not panels:
        return
    path = os.path.join(folder, program.rsplit("/", 1)[1] + ".svg")
    if not shutil.which("gnuplot"):
        print(f"no plot: gnuplot is not installed (Debian: gnuplot-nox); {path} is not drawn")
        return
    lines = [f"set terminal svg size {560 * len(panels)},460 font 'sans,12' background 'white'", f"set output '{path}'",
             "set logscale xy", "set grid", "set key outside below noenhanced", f"set xlabel '{x_label}'",
             f"set ylabel '{y_label}'",
             "set format x '%.0s %cB'", f"set multiplot layout 1,{len(panels)}"]
    for panel, series in sorted(panels.items()):
        lines.append(f"set title '{program.rsplit('/', 1)[1]}, {panel} {unit}' noenhanced")
        parts = []
        for number, (title, points) in enumerate(sorted(series.items(), key=lambda item: (rank_of(item[0]), item[0]))):
            lines += [f"$d{number} << EOD", *(f"{x} {y}" for x, y in sorted(points)), "EOD"]
            colour = COLOURS[rank_of(title)]
            variant = sum(1 for other in series if rank_of(other) == rank_of(title) and other < title)
            style = f"lw {2 if variant == 0 else 1} dt {2 if title.startswith('roof') else 1} pt {5 + 2 * variant} ps 0.6"
            parts.append(f"$d{number} using 1:2 with linespoints lc rgb '{colour}' {style} title '{title}'")
        lines.append("plot " + ", ".join(parts))
    lines.append("unset multiplot")
    subprocess.run(["gnuplot"], input="\n".join(lines) + "\n", text=True, check=True)
    print(f"{path} shows it")


def main():
    parser = argparse.ArgumentParser(usage="ratios.py [--csv FILE] [--plots FOLDER] FOLDER|FILE.json...")
    parser.add_argument("--csv")
    parser.add_argument("--plots")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()
    files = []
    for path in options.paths:
        if os.path.isdir(path):
            found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
            files += [(os.path.relpath(each, path)[:-5], each) for each in sorted(found) if each.endswith(".json")]
        else:
            files.append((os.path.basename(path).removesuffix(".json"), path))
    rows, missing, measured = [], [], 0
    for program, path in files:
        try:
            context, benchmarks = read(path)
        except (ValueError, KeyError, OSError) as error:
            missing.append(f"{path}: not a whole result of a benchmark: {error}")
            continue
        measured += sum(len(each.runs + each.disturbed) for each in benchmarks.values())
        found, without = rows_of(program, benchmarks)
        rows += found
        missing += without
        if options.plots and program in PLOTS:
            plot(program, benchmarks, options.plots)
    for line in dict.fromkeys(missing):
        print(line)
    lines = [("case", "Lockstep", "peer", "", "ratio", "quartiles; pairs")]
    for _, case, peer, median, low, high, pairs, mine, its in rows:
        lines.append((case, mine, peer, its, f"{median:.2f}", f"{low:.2f} to {high:.2f}; {pairs}"))
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip())
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["benchmark", "case", "peer", "ratio", "low", "high"])
            for program, case, peer, median, low, high, *_ in rows:
                writer.writerow([program, case, peer, *(f"{value:.3f}" for value in (median, low, high))])
    if not measured:
        sys.exit("ratios.py: nothing was measured")


if __name__ == "__main__":
    main()
