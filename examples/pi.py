"""Estimates pi: a function over many seeds, on all workers."""

import random

from iris.client import IrisClient

POINTS = 100_000
SEEDS = range(16)


def points_in_circle(seed: int) -> int:
    chance = random.Random(seed)
    return sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(POINTS))


with IrisClient.local(workers=2) as client:
    inside = done = 0
    for _, count in client.map(points_in_circle, SEEDS, as_completed=True):
        inside, done = inside + count, done + 1
        print(f"{done:2} of {len(SEEDS)}: pi is about {4 * inside / (done * POINTS):.4f}")
