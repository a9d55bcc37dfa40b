#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a Gymnasium simulator with a model trained by trajectory_transformer, and prints average returns.

    python3 tools/play_episodes.py CartPole-v1 PARAMETERS.safetensors --returns 100,250,500 --data episodes/

PARAMETERS is a file in the --save-dir of the training, such as checkpoints/best.safetensors. --returns are the model's
target returns. --data compares with the recorded episodes. Needs numpy and gymnasium.
"""
import argparse
import pathlib
import subprocess
import sys

try:
    import numpy
except ImportError:
    sys.exit("play_episodes.py: needs numpy; install it (Debian: python3-numpy)")


class Player:
    """The program trajectory_player, which answers with an action per step."""

    def __init__(self, program, parameters):
        self.process = subprocess.Popen([program, parameters], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def act(self, command, number, state):
        numbers = " ".join(f"{x:.9g}" for x in numpy.asarray(state, numpy.float64).reshape(-1))
        try:
            self.process.stdin.write(f"{command} {number:.9g} {numbers}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"play_episodes: trajectory_player ended with code {self.process.wait()}")
        return answer


def play(simulator, player, seed, target):
    space = simulator.action_space
    state, _ = simulator.reset(seed=seed)
    answer, total, ended = player.act("begin", target, state), 0.0, False
    while not ended:
        if hasattr(space, "n"):
            action = int(answer[0]) + int(space.start)
        else:
            action = numpy.clip(numpy.array(answer, space.dtype).reshape(space.shape), space.low, space.high)
        state, reward, terminated, truncated, _ = simulator.step(action)
        total += float(reward)
        ended = terminated or truncated
        if not ended:
            answer = player.act("next", reward, state)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("simulator", help="name in Gymnasium")
    parser.add_argument("parameters", help="file of a trained model")
    parser.add_argument("--returns", required=True, help="returns to earn, separated by commas; --returns=-500,-200 for negative ones")
    parser.add_argument("--episodes", type=int, default=20, help="number of episodes for each return (default 20)")
    parser.add_argument("--seed", type=int, default=100_000, help="of the first episode (default %(default)s)")
    parser.add_argument("--data", type=pathlib.Path, help="folder of recorded episodes to compare with")
    parser.add_argument("--program", default="build/release/examples/trajectory_player", help="the program that acts (default %(default)s)")
    options = parser.parse_args()
    try:
        import gymnasium
    except ImportError:
        sys.exit("play_episodes: needs gymnasium; install it with pip install gymnasium")
    simulator = gymnasium.make(options.simulator)
    player = Player(options.program, options.parameters)
    print("played by,told to earn,mean return,lowest,highest")
    if options.data:
        rewards, lengths = (numpy.load(options.data / f"{name}.npy") for name in ("rewards", "episode_lengths"))
        returns = numpy.add.reduceat(rewards.astype(numpy.float64), numpy.concatenate([[0], numpy.cumsum(lengths)[:-1]]))
        print(f"recorded,,{returns.mean():.1f},{returns.min():.1f},{returns.max():.1f}", flush=True)
    for target in (float(each) for each in options.returns.split(",")):
        returns = [play(simulator, player, options.seed + number, target) for number in range(options.episodes)]
        print(f"model,{target:g},{numpy.mean(returns):.1f},{min(returns):.1f},{max(returns):.1f}", flush=True)


if __name__ == "__main__":
    main()
