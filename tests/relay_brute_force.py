"""The relay model once more, one route, one slot and one sample at a time, from the text of docs/relay-model.md."""

import math

NOISE = 10**-20.4 * 20e6


def routes_of(positions, most):
    """Lists of device indices."""
    to_server = [math.hypot(x, y) for x, y in positions]
    free, routes = list(range(len(positions))), []
    while free:
        current = max(free, key=lambda i: (to_server[i], -i))
        route = [current]
        free.remove(current)
        while len(route) < most:
            closer = [i for i in free if to_server[i] < to_server[current]]
            if not closer:
                break
            current = min(closer, key=lambda i: (math.dist(positions[i], positions[route[-1]]), i))
            route.append(current)
            free.remove(current)
        routes.append(route)
    return routes


def hop(positions, route, place, sharing, slot):
    """Mean SNR, threshold and bits a slot of one hop, by Newton's method for Lambert's W."""
    there = positions[route[place + 1]] if place + 1 < len(route) else (0, 0)
    metres = max(1000 * math.dist(positions[route[place]], there), 1)
    snr = 0.2 * metres**-4 / NOISE
    w = math.log1p(snr)
    for _ in range(100):
        w -= (w * math.exp(w) - snr) / (math.exp(w) * (w + 1))
    return snr, min(math.expm1(w), snr), slot / sharing * 20e6 * math.log2(math.exp(w))


def merge(held, device, target, dummies, cap, draw):
    """Algorithm 1 on lists of (device, label) in the order of their arrival."""
    present = {label for _, label in held}
    add = [(target, min(cap, 4))] + [(label, min(cap, 200)) for label in dummies if target not in present]
    for label, own in add:
        received = [sample for sample in held if sample[1] == label]
        if label != target and len(received) == cap:
            continue
        pool = received + [(device, label)] * own
        kept = [pool[k] for k in draw.permutation(len(pool))[: min(cap, len(pool))]]
        held = [sample for sample in held if sample[1] != label] + kept
    return held


def send(bits, cost, room_in_a_slot, succeeds, clock, end):
    """Samples that are through, and the clock: from slot `clock` + 1 on, until all are or slot `end` has passed."""
    needed, got = max(1, math.ceil(bits / room_in_a_slot)), 0
    while got < needed and clock < end:
        clock += 1
        got += succeeds(clock)
    through = math.inf if got == needed else max(0, math.floor((got * room_in_a_slot - 10) / cost))
    return through, clock


def run_route(route, devices, setting, sharing, deadline, gain, draw):
    """Used slots of each hop and the samples that arrive; `gain` gives h² of a slot of the route's clock."""
    positions = [(device["x"], device["y"]) for device in devices]
    cost, cap, slot = setting["bits"] + 4, setting["cap"], setting["slot"]
    held, clock, used = [], 0, []
    for place, i in enumerate(route):
        held = merge(held, i, devices[i]["target"], devices[i]["dummies"], cap, draw)
        if setting["shuffle"]:
            held = [held[k] for k in draw.permutation(len(held))]
        else:
            held = sorted(held, key=lambda sample: sample[1])
        snr, threshold, room = hop(positions, route, place, sharing, slot)
        end = math.inf if deadline is None else math.floor(deadline * (place + 1) / len(route))
        through, now = send(
            10 + cost * len(held), cost, room, lambda n, g=snr, t=threshold: g * gain(n) >= t, clock, end
        )
        used.append(now - clock)
        clock, held = now, held[: min(len(held), through)]
    return used, held
