"""The replay of `benches/estimate.rs` by other means: simpy, numpy, and a heap in plain Python.

    python3 -m venv VENV && VENV/bin/pip install simpy numpy
    VENV/bin/python benches/peers/estimate.py [AGENTS] [REPLAYS] [ROUNDS]

The same graph (layers of ten, three parents each), the same limits (eight sessions at once, four of the first model),
the same order of preference, and durations drawn from the same forty sessions of each pair. Corrections and waits are
left out, which the estimate has. Tells milliseconds for all replays, the least of so many rounds, and the median of the
replays, which has to be about the same for all.
"""

import heapq
import math
import sys
import time

import numpy
import simpy

PARALLEL = 8
FIRST_MODEL = 4


class Random:
    """xorshift64*, as the bench draws its graph."""

    def __init__(self):
        self.state = 42

    def below(self, bound):
        mask = (1 << 64) - 1
        self.state ^= self.state >> 12
        self.state ^= (self.state << 25) & mask
        self.state ^= self.state >> 27
        return ((self.state * 0x2545F4914F6CDD1D & mask) >> 33) % bound


def graph(agents):
    chance = Random()
    parents = []
    for node in range(agents // 10 * 10):
        layer, chosen = node // 10, []
        while layer and len(chosen) < 3:
            parent = (layer - 1) * 10 + chance.below(10)
            if parent not in chosen:
                chosen.append(parent)
        parents.append(chosen)
    children = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    remaining = [1] * len(parents)
    for node in reversed(range(len(parents))):
        remaining[node] += max((remaining[child] for child in children[node]), default=0)
    order = sorted(range(len(parents)), key=lambda node: (-remaining[node], node))
    rank = {node: place for place, node in enumerate(order)}
    model = [node % 3 for node in range(len(parents))]
    return parents, children, rank, model


def durations(agents, replays, seed):
    chance = numpy.random.default_rng(seed)
    drawn = numpy.empty((replays, agents))
    for node in range(agents):
        median = 120.0 * (3 - node % 3) * (1 + node // 3 % 3)
        sessions = numpy.sort([median * math.exp((nth - 19.5) / 20) for nth in range(40)])
        drawn[:, node] = numpy.quantile(sessions, chance.random(replays))
    return drawn


def by_heap(tables, drawn):
    parents, children, rank, model = tables
    totals = []
    for work in drawn.tolist():
        unmet = [len(above) for above in parents]
        free, first, now, running = PARALLEL, FIRST_MODEL, 0.0, []
        ready = {True: [], False: []}
        for node, left in enumerate(unmet):
            if not left:
                heapq.heappush(ready[model[node] == 0], (rank[node], node))
        while True:
            while free:
                heads = [queue for own, queue in ready.items() if queue and (not own or first)]
                if not heads:
                    break
                _, node = heapq.heappop(min(heads))
                free -= 1
                first -= model[node] == 0
                heapq.heappush(running, (now + work[node], node))
            if not running:
                break
            now, node = heapq.heappop(running)
            free += 1
            first += model[node] == 0
            for child in children[node]:
                unmet[child] -= 1
                if not unmet[child]:
                    heapq.heappush(ready[model[child] == 0], (rank[child], child))
        totals.append(now)
    return totals


def by_simpy(tables, drawn):
    parents, _, rank, model = tables
    totals = []
    for work in drawn.tolist():
        world = simpy.Environment()
        places = simpy.PriorityResource(world, PARALLEL)
        first = simpy.PriorityResource(world, FIRST_MODEL)
        done = [world.event() for _ in parents]

        def agent(node):
            yield world.all_of([done[parent] for parent in parents[node]])
            if model[node] == 0:
                with first.request(priority=rank[node]) as own:
                    yield own
                    with places.request(priority=rank[node]) as place:
                        yield place
                        yield world.timeout(work[node])
            else:
                with places.request(priority=rank[node]) as place:
                    yield place
                    yield world.timeout(work[node])
            done[node].succeed()

        for node in range(len(parents)):
            world.process(agent(node))
        world.run()
        totals.append(world.now)
    return totals


def by_numpy(tables, drawn):
    """All replays at once, an event of each in a step; columns in the order of preference."""
    parents, _, rank, model = tables
    replays, agents = drawn.shape
    order = sorted(rank, key=rank.get)
    place = {node: at for at, node in enumerate(order)}
    work = drawn[:, order]
    first = numpy.array([model[node] == 0 for node in order])
    adjacent = numpy.zeros((agents, agents), dtype=numpy.int16)
    for node, above in enumerate(parents):
        for parent in above:
            adjacent[place[parent], place[node]] = 1
    unmet = numpy.tile(adjacent.sum(axis=0).astype(numpy.int16), (replays, 1))
    begun = numpy.zeros((replays, agents), dtype=bool)
    ends = numpy.full((replays, agents), numpy.inf)
    now = numpy.zeros(replays)
    free = numpy.full(replays, PARALLEL)
    own = numpy.full(replays, FIRST_MODEL)
    every = numpy.arange(replays)
    for _ in range(agents):
        while True:
            open_ = (unmet == 0) & ~begun & (free > 0)[:, None]
            open_ &= ~first | (own > 0)[:, None]
            node = open_.argmax(axis=1)
            rows = every[open_[every, node]]
            if not len(rows):
                break
            node = node[rows]
            begun[rows, node] = True
            ends[rows, node] = now[rows] + work[rows, node]
            free[rows] -= 1
            own[rows] -= first[node]
        node = ends.argmin(axis=1)
        now = ends[every, node]
        ends[every, node] = numpy.inf
        free += 1
        own += first[node]
        unmet -= adjacent[node]
    return now


def main():
    agents, replays, rounds = (int(given) for given in (sys.argv[1:] + ["100", "1000", "3"][len(sys.argv) - 1 :]))
    tables = graph(agents)
    drawn = durations(agents, replays, 1)
    for name, play in [("heapq", by_heap), ("numpy", by_numpy), ("simpy", by_simpy)]:
        took = []
        for _ in range(rounds):
            since = time.perf_counter()
            totals = play(tables, drawn)
            took.append(1000 * (time.perf_counter() - since))
        median = float(numpy.median(totals))
        print(f"{name}: {min(took):.1f} ms for {replays} replays of {agents} agents; median {median / 60:.1f} min")


if __name__ == "__main__":
    main()
