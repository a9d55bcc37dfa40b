#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records episodes of a Gymnasium physics simulator as training data for trajectory_transformer.

A scripted controller plays, and in each episode a share of its actions is replaced by random ones. The share varies between
episodes, and therefore so do the returns. A seed gives equal episodes on all machines with equal versions.

    python3 tools/record_episodes.py CartPole-v1 episodes/ --episodes 400
    python3 tools/record_episodes.py Pendulum-v1 episodes/ --episodes 400

Needs numpy and gymnasium with its classic control (pip install numpy gymnasium).
"""
import argparse
import json
import pathlib
import sys

try:
    import numpy
except ImportError:
    sys.exit("record_episodes.py: needs numpy; install it (Debian: python3-numpy)")

from episodes_to_npz import save_joined, summary_of


def cart_pole(state):
    """Pushes towards the side to which the pole falls."""
    _, _, angle, speed = state
    return int(angle + 0.5 * speed > 0)


def pendulum(state):
    """Pumps energy until the pendulum is near the top, and then holds it there."""
    cosine, sine, speed = state
    if cosine > 0.9:
        torque = -12 * numpy.arctan2(sine, cosine) - 3 * speed
    else:
        missing = 15 - (0.5 * speed**2 + 15 * cosine)  # energy: at rest at the top it is 15
        torque = missing * (speed if abs(speed) > 0.01 else 0.01)
    return numpy.array([numpy.clip(torque, -2, 2)], numpy.float32)


def mountain_car(state):
    """Accelerates in the direction of motion."""
    return 2 if state[1] >= 0 else 0


def acrobot(state):
    """Pushes the second link in the direction in which the first one swings."""
    return 0 if state[4] > 0 else 2


CONTROLLERS = {"CartPole-v1": cart_pole, "Pendulum-v1": pendulum, "MountainCar-v0": mountain_car, "Acrobot-v1": acrobot}


def record(simulator, controller, seed, share):
    """Returns one episode as a dictionary of arrays; `share` of the actions are random."""
    draws = numpy.random.default_rng(seed)
    simulator.action_space.seed(seed)
    state, _ = simulator.reset(seed=seed)
    steps = {"observations": [], "actions": [], "rewards": [], "terminals": []}
    ended = False
    while not ended:
        action = simulator.action_space.sample() if draws.random() < share else controller(state)
        following, reward, terminated, truncated, _ = simulator.step(action)
        for name, value in zip(steps, (state, action, reward, terminated)):
            steps[name].append(value)
        state, ended = following, terminated or truncated
    discrete = numpy.issubdtype(numpy.asarray(steps["actions"]).dtype, numpy.integer)
    types = {"observations": numpy.float32, "actions": numpy.int64 if discrete else numpy.float32, "rewards": numpy.float32}
    return {name: numpy.asarray(values, types.get(name, numpy.bool_)) for name, values in steps.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("simulator", choices=sorted(CONTROLLERS), help="name in Gymnasium")
    parser.add_argument("folder", type=pathlib.Path, help="receives the files; must be new or empty")
    parser.add_argument("--episodes", type=int, default=400, help="number of episodes (default 400)")
    parser.add_argument("--random", default="0,0.2,0.4,0.6,0.8,1", help="shares of random actions, in turn (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (default 1)")
    options = parser.parse_args()
    try:
        import gymnasium
    except ImportError:
        sys.exit("record_episodes: needs gymnasium; install it with pip install gymnasium")
    shares = [float(share) for share in options.random.split(",")]
    if options.episodes < 1 or not all(0 <= share <= 1 for share in shares):
        sys.exit("record_episodes: --episodes must be at least 1, and each share of --random from 0 to 1")
    simulator = gymnasium.make(options.simulator)
    controller = CONTROLLERS[options.simulator]
    episodes = [
        record(simulator, controller, options.seed * 1_000_003 + number, shares[number % len(shares)])
        for number in range(options.episodes)
    ]
    save_joined(options.folder, episodes)
    about = {"simulator": options.simulator, "random": shares, "seed": options.seed}
    (options.folder / "recorded.json").write_text(json.dumps(about) + "\n")
    print(summary_of(options.folder, episodes))


if __name__ == "__main__":
    main()
