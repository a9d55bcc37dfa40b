#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts recorded episodes to the files that trajectory_transformer reads.

    python3 tools/episodes_to_npz.py SOURCE FOLDER [--per-episode]

SOURCE is one of
  FILE.pkl, FILE.pickle  a list of episodes, each a dictionary of arrays, or a flat dictionary in D4RL's format, with
                         `terminals` and `timeouts` at the ends of episodes
  FILE.npz, FILE.npy     such a flat dictionary, or a pickled object as above
  FILE.hdf5, FILE.h5     a flat file as in D4RL, or groups `episode_0`, ... as in Minari (needs h5py)
  minari:NAME            a local data set of Minari (needs minari)

Arrays may be called observations, obs or states; actions, action or acts; rewards or reward; terminals, terminations,
dones or done; timeouts or truncations. Dictionaries of arrays become columns in the order of their names. An observation
after the last action is dropped. FOLDER receives observations.npy, actions.npy, rewards.npy, terminals.npy and
episode_lengths.npy, or with --per-episode one .npz per episode. Needs numpy. Pickle files can run code: convert only your
own.
"""
import argparse
import pathlib
import pickle
import sys

try:
    import numpy
except ImportError:
    sys.exit("episodes_to_npz.py: needs numpy; install it (Debian: python3-numpy)")

NAMES = {
    "observations": ("observations", "observation", "obs", "states", "state"),
    "actions": ("actions", "action", "acts"),
    "rewards": ("rewards", "reward"),
    "terminals": ("terminals", "terminations", "terminated", "dones", "done"),
    "timeouts": ("timeouts", "truncations", "truncated"),
}


class Refusal(Exception):
    """Invalid data, described in one sentence."""


def flat(value):
    """Returns an array with a row per step; dictionaries and tuples of arrays, as of composite spaces, become columns."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
        parts = [flat(part) for part in value]
    elif isinstance(value, tuple):
        parts = [flat(part) for part in value]
    else:
        array = numpy.asarray(value)
        if array.dtype == object:
            raise Refusal("arrays of different lengths within one episode")
        return array
    return numpy.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def find(episode, wanted):
    for name in NAMES[wanted]:
        if name in episode:
            return episode[name]
    return None


def is_episode(value):
    return isinstance(value, dict) and find(value, "observations") is not None


def normal(episode, who):
    """Returns a checked episode with our names and types."""
    arrays = {}
    for name in ("observations", "actions", "rewards"):
        value = find(episode, name)
        if value is None:
            raise Refusal(f"{who}: has no {name} among {', '.join(map(str, episode))}")
        arrays[name] = flat(value)
    steps = len(arrays["actions"])
    if len(arrays["observations"]) == steps + 1:
        arrays["observations"] = arrays["observations"][:-1]
    terminals = find(episode, "terminals")
    arrays["terminals"] = numpy.zeros(steps, numpy.bool_) if terminals is None else flat(terminals).reshape(-1).astype(numpy.bool_)
    if arrays["rewards"].size == steps:
        arrays["rewards"] = arrays["rewards"].reshape(-1)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise Refusal(f"{who}: arrays of unequal lengths: " + ", ".join(f"{name} {length}" for name, length in lengths.items()))
    if steps == 0:
        raise Refusal(f"{who}: has no step")
    if not numpy.issubdtype(arrays["observations"].dtype, numpy.integer):
        arrays["observations"] = arrays["observations"].astype(numpy.float32)
    arrays["rewards"] = arrays["rewards"].astype(numpy.float32)
    integers = numpy.issubdtype(arrays["actions"].dtype, numpy.integer)
    if integers and arrays["actions"].size == steps:
        arrays["actions"] = arrays["actions"].reshape(-1)
    arrays["actions"] = arrays["actions"].astype(numpy.int64 if integers else numpy.float32)
    return {name: numpy.ascontiguousarray(array) for name, array in arrays.items()}


def cut(steps, who):
    """Yields episodes of a flat dictionary, divided after set terminals or timeouts. Steps after the last end are an episode, too."""
    terminals, timeouts = find(steps, "terminals"), find(steps, "timeouts")
    if terminals is None and timeouts is None:
        return [steps]
    ends = numpy.zeros(len(find(steps, "actions")), numpy.bool_)
    for flags in (terminals, timeouts):
        if flags is not None:
            flags = numpy.asarray(flags).reshape(-1).astype(numpy.bool_)
            if len(flags) != len(ends):
                raise Refusal(f"{who}: {len(flags)} flags of episodes' ends and {len(ends)} actions")
            ends |= flags
    borders = [0, *(numpy.flatnonzero(ends) + 1)]
    if borders[-1] != len(ends):
        borders.append(len(ends))
    known = {name: find(steps, name) for name in NAMES}
    return [
        {name: flat(value)[first:last] for name, value in known.items() if value is not None}
        for first, last in zip(borders, borders[1:])
    ]


def episodes_of(value, who):
    if isinstance(value, numpy.ndarray) and value.dtype == object:
        value = value.tolist()
    if is_episode(value):
        # One recorded episode of a buffer with one more observation, or many concatenated ones.
        return cut(value, who)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and value and all(is_episode(each) for each in value):
        return list(value)
    raise Refusal(f"{who}: is neither a list of episodes, each a dictionary with observations, actions and rewards, nor one such dictionary")


def tree(group):
    """Returns an HDF5 group as a dictionary."""
    return {name: tree(item) if hasattr(item, "keys") else item[()] for name, item in group.items()}


def natural(name):
    digits = "".join(c for c in name if c.isdigit())
    return (int(digits) if digits else -1, name)


def load(source):
    if source.startswith("minari:"):
        try:
            import minari
        except ImportError:
            raise Refusal("needs minari; install it with pip install minari[hdf5]") from None
        return [
            {"observations": e.observations, "actions": e.actions, "rewards": e.rewards, "terminals": e.terminations}
            for e in minari.load_dataset(source[len("minari:") :]).iterate_episodes()
        ]
    path = pathlib.Path(source)
    if not path.is_file():
        raise Refusal(f"{source}: no such file")
    if path.suffix in (".hdf5", ".h5"):
        try:
            import h5py
        except ImportError:
            raise Refusal("needs h5py; install it with pip install h5py") from None
        with h5py.File(path) as file:
            value = tree(file)
        if not is_episode(value):
            value = [value[name] for name in sorted(value, key=natural) if isinstance(value[name], dict)]
        return episodes_of(value, source)
    if path.suffix == ".npz":
        with numpy.load(path) as file:
            return episodes_of({name: file[name] for name in file.files}, source)
    if path.suffix == ".npy":
        return episodes_of(numpy.load(path, allow_pickle=True), source)
    with open(path, "rb") as file:
        return episodes_of(pickle.load(file), source)


def prepare(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Refusal(f"{folder}: is not empty; name a new folder")


def save_joined(folder, episodes):
    prepare(folder)
    for name in ("observations", "actions", "rewards", "terminals"):
        numpy.save(folder / f"{name}.npy", numpy.concatenate([episode[name] for episode in episodes]))
    numpy.save(folder / "episode_lengths.npy", numpy.array([len(episode["rewards"]) for episode in episodes], numpy.int64))


def save_apart(folder, episodes):
    prepare(folder)
    digits = len(str(len(episodes) - 1))
    for number, episode in enumerate(episodes):
        numpy.savez(folder / f"episode_{number:0{digits}}.npz", **episode)


def summary_of(folder, episodes):
    returns = numpy.array([episode["rewards"].sum(dtype=numpy.float64) for episode in episodes])
    steps = sum(len(episode["rewards"]) for episode in episodes)
    return (
        f"{folder}: {len(episodes)} episodes, {steps} steps, returns from {returns.min():.6g} to {returns.max():.6g}, "
        f"mean {returns.mean():.6g}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="file or folder of episodes, in one of the formats above")
    parser.add_argument("folder", type=pathlib.Path, help="receives the files")
    parser.add_argument("--per-episode", action="store_true", help="one .npz per episode")
    options = parser.parse_args()
    try:
        found = [normal(episode, f"{options.source}, episode {i}") for i, episode in enumerate(load(options.source))]
        (save_apart if options.per_episode else save_joined)(options.folder, found)
    except Refusal as error:
        sys.exit(f"episodes_to_npz: {error}")
    except (ValueError, OSError, EOFError, pickle.UnpicklingError, ImportError, AttributeError) as error:
        sys.exit(f"episodes_to_npz: {options.source}: cannot be converted: {error}; --help lists what is read")
    print(summary_of(options.folder, found))


if __name__ == "__main__":
    main()
