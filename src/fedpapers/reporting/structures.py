"""Group structures: the picture and the table of who trains with whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

Structure = Mapping[str, Sequence[str]]

_COLUMNS = 4
_GROUP, _WORKER, _LINK, _PATH = "#b9d7ee", "white", "0.6", "#d55e00"
_MOST_NAMED = 15  # nodes up to which there is room for larger names


def structures_table(structures: Mapping[str, Structure]) -> pd.DataFrame:
    """One row a structure: workers, groups, their sizes, overlaps, diameter.

    Two groups are neighbours when a worker belongs to both; the diameter is the largest number of hops from a group to
    another.

    Args:
        structures: Name -> group -> workers.
    """
    return pd.DataFrame([_row(name, groups) for name, groups in structures.items()])


def plot_structures(structures: Mapping[str, Structure]) -> Figure:
    """A panel for each structure: groups, workers, who belongs where, and the longest way that leakage can take.

    Args:
        structures: Name -> group -> workers.
    """
    rows = -(-len(structures) // _COLUMNS)
    columns = min(_COLUMNS, len(structures))
    figure, grid = plt.subplots(rows, columns, figsize=(3.1 * columns, 3.2 * rows), squeeze=False, layout="constrained")
    for axes in grid.flat[len(structures) :]:
        axes.remove()
    for axes, (name, groups) in zip(grid.flat, structures.items(), strict=False):
        _panel(axes, name, groups)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3)
    return figure


def longest_way(groups: Structure) -> list[str]:
    """Worker, group, worker, group, …, worker: a shortest way between two workers who are as far apart as any."""
    graph = _graph(groups)
    workers = _workers(groups)
    ways = (nx.single_source_shortest_path(graph, ("worker", worker)) for worker in workers)
    reached = (way[("worker", other)] for way in ways for other in workers if ("worker", other) in way)
    return [name for _, name in max(reached, key=len)]


def _row(name: str, groups: Structure) -> dict[str, str]:
    workers = _workers(groups)
    sizes = [len(members) for members in groups.values()]
    memberships = [sum(worker in members for members in groups.values()) for worker in workers]
    diameter = _diameter(groups)
    return {
        "Structure": name,
        "Workers": str(len(workers)),
        "Groups": str(len(groups)),
        "Group sizes": _span(sizes),
        "Workers in several groups": str(sum(count > 1 for count in memberships)),
        "Groups of a worker": _span(memberships),
        "Diameter (hops)": "not connected" if math.isinf(diameter) else f"{diameter:g}",
    }


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def _diameter(groups: Structure) -> float:
    neighbours = nx.Graph()
    neighbours.add_nodes_from(groups)
    members = {name: set(workers) for name, workers in groups.items()}
    neighbours.add_edges_from((a, b) for a in groups for b in groups if a < b and members[a] & members[b])
    return float(nx.diameter(neighbours)) if nx.is_connected(neighbours) else math.inf


def _workers(groups: Structure) -> list[str]:
    return list(dict.fromkeys(worker for members in groups.values() for worker in members))


def _graph(groups: Structure) -> nx.Graph:
    """Groups and workers, linked where a worker belongs to a group."""
    graph = nx.Graph()
    graph.add_edges_from(
        (("group", name), ("worker", worker)) for name, workers in groups.items() for worker in workers
    )
    return graph


def _layout(graph: nx.Graph) -> dict[tuple[str, str], np.ndarray]:
    """Places of all nodes; parts that are not connected stand side by side."""
    places: dict[tuple[str, str], np.ndarray] = {}
    left = 0.0
    for part in nx.connected_components(graph):
        connected = graph.subgraph(part)
        apart = nx.circular_layout(connected, scale=0.05)  # the spectrum puts workers of one group on one place
        rough = {node: place + apart[node] for node, place in nx.spectral_layout(connected).items()}
        own = nx.kamada_kawai_layout(connected, pos=rough)
        start = min(place[0] for place in own.values())
        places |= {node: place + np.array([left - start, 0.0]) for node, place in own.items()}
        left = max(place[0] for place in places.values()) + 0.9
    return places


def _panel(axes: Axes, name: str, groups: Structure) -> None:
    graph = _graph(groups)
    places = _layout(graph)
    way = longest_way(groups)
    kinds = [("worker", "group")[i % 2] for i in range(len(way))]
    nodes = list(zip(kinds, way, strict=True))
    size = 1.0 if len(graph) <= _MOST_NAMED else 0.62
    nx.draw_networkx_edges(graph, places, ax=axes, edge_color=_LINK)
    nx.draw_networkx_edges(graph, places, ax=axes, edgelist=list(pairwise(nodes)), edge_color=_PATH, width=2.6)
    for kind, shape, colour, area in (("group", "s", _GROUP, 330), ("worker", "o", _WORKER, 200)):
        of_kind = [node for node in graph if node[0] == kind]
        rim = [_PATH if node in nodes else "black" for node in of_kind]
        nx.draw_networkx_nodes(
            graph, places, of_kind, ax=axes, node_shape=shape, node_color=colour, edgecolors=rim,
            node_size=area * size, linewidths=[1.8 if node in nodes else 0.8 for node in of_kind],
        )  # fmt: skip
    ends = [nodes[0], nodes[-1]]
    nx.draw_networkx_nodes(graph, places, ends, ax=axes, node_color=_PATH, edgecolors=_PATH, node_size=200 * size)
    for colour, own in (("black", [n for n in graph if n not in ends]), ("white", ends)):
        labels = {node: node[1] for node in own}
        nx.draw_networkx_labels(graph, places, labels, ax=axes, font_size=8 if size == 1 else 6, font_color=colour)
    axes.set_title(name)
    axes.margins(0.08)
    axes.set_axis_off()


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker="s", ms=11, mfc=_GROUP, mec="black", label="group"),
        Line2D([], [], ls="", marker="o", ms=10, mfc=_WORKER, mec="black", label="worker"),
        Line2D([], [], color=_PATH, lw=2.6, marker="o", ms=8, label="one of the longest ways from worker to worker"),
    ]
