# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The pictures of mapping's figures."""
from select_time import Axis

WIDTH, HEIGHT, TOP = 340, 240, 50
COLOURS = {"ours": "#1b7f3b", "scotch": "#c05a00", "treematch": "#3b5bbf", "paper": "#888888"}
# Goglin, Bordage and Foyer, section 4.2 and figure 4: of more than 300 runs of miniGhost so many percent gained so much
# run time.
PAPER = [(-3.6, 100), (0, 92.5), (10.1, 50), (20, 24.9), (30, 5.7), (33.6, 0)]
LEGEND = {"ours": "Topiary", "scotch": "Scotch as netloc calls it", "treematch": "TreeMatch",
          "paper": "the paper's runs: run time over round robin"}


def page(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            'font-size="12">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def frame(left, title, across, up, below):
    """A panel's axes; across and up: [(share of the axis, text)]."""
    text = [f'<text x="{left}" y="{TOP - 20}">{title}</text>',
            f'<path d="M{left} {TOP} v{HEIGHT} h{WIDTH}" fill="none" stroke="black"/>',
            f'<text x="{left + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}" text-anchor="middle">{below}</text>']
    for share, label in up:
        y = TOP + HEIGHT * (1 - share)
        text.append(f'<path d="M{left} {y:.1f} h{WIDTH}" stroke="#e4e4e4"/>'
                    f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for share, label in across:
        x = left + WIDTH * share
        text.append(f'<path d="M{x:.1f} {TOP} v{HEIGHT}" stroke="#e4e4e4"/>'
                    f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{label}</text>')
    return text


def line(left, points, colour, more=""):
    """points: shares of both axes."""
    at = " ".join(f"{left + WIDTH * x:.1f},{TOP + HEIGHT * (1 - y):.1f}" for x, y in points)
    return f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="2" {more}/>'


def legend(left, names):
    return [f'<text x="{left + x}" y="{TOP + HEIGHT + 70}" fill="{COLOURS[name]}">{LEGEND[name]}</text>'
            for x, name in names]


# --- figure 4 of the paper

LOW, HIGH = -20, 100


def across_gain(percent):
    return (min(max(percent, LOW), HIGH) - LOW) / (HIGH - LOW)


def steps(gains):
    """Of a sorted list the share that is at least x, as x grows."""
    points, n = [(0.0, 1.0)], len(gains)
    for i, gain in enumerate(gains):
        points += [(across_gain(gain), 1 - i / n), (across_gain(gain), 1 - (i + 1) / n)]
    return points


def gains_panel(left, title, cases, with_paper):
    marks = [(across_gain(x), f"{x} %") for x in range(LOW, HIGH + 1, 20)]
    text = frame(left, title, marks, [(y / 100, f"{y} %") for y in range(0, 101, 25)], "gain of at least")
    text.append(f'<path d="M{left + WIDTH * across_gain(0):.1f} {TOP} v{HEIGHT}" stroke="#777"/>')
    if with_paper:
        text.append(line(left, [(across_gain(x), y / 100) for x, y in PAPER], COLOURS["paper"],
                         'stroke-dasharray="4 3"'))
        text += [f'<circle cx="{left + WIDTH * across_gain(x):.1f}" cy="{TOP + HEIGHT * (1 - y / 100):.1f}" r="3" '
                 f'fill="{COLOURS["paper"]}"/>' for x, y in PAPER]
    for method in ("treematch", "scotch", "ours"):
        gains = sorted(case.gain(method, "block") for case in cases if case.cost[method] is not None)
        if gains:
            text.append(line(left, steps(gains), COLOURS[method]))
    return text


def gains(path, stencils, every):
    """Two panels: the stencils on the paper's fat tree, beside what the paper tells, and all problems."""
    parts = gains_panel(60, f"{len(stencils)} stencils on the paper's fat tree: share of them with a", stencils, True)
    parts += gains_panel(500, f"all {len(every)} problems: share of them with a", every, False)
    parts += legend(60, ((0, "ours"), (70, "scotch"), (230, "treematch"), (310, "paper")))
    parts.append(f'<text x="60" y="{TOP + HEIGHT + 92}">gain: communication cost that is saved, over block</text>')
    path.write_text(page(880, TOP + HEIGHT + 110, parts), encoding="utf-8")


# --- time by ranks

EFFORTS = {"normal": "#1b7f3b", "fast": "#3b5bbf"}
DASHES = {"stencil3d": "none", "dense": "5 3"}


def times(path, found, goals):
    """found: {(effort, pattern): [(ranks, seconds)]}; goals: [(ranks at most, seconds)] of normal."""
    points = [point for some in found.values() for point in some]
    across, up = Axis([x for x, _ in points], True), Axis([y for _, y in points] + [y for _, y in goals], True)
    parts = frame(60, "processor time of one core, seconds, by ranks",
                  [(across.at(x), f"{x:,.0f}") for x in across.marks],
                  [(up.at(y), f"{y:,.4g}") for y in up.marks], "ranks")
    for (effort, pattern), some in found.items():
        parts.append(line(60, [(across.at(x), up.at(y)) for x, y in some], EFFORTS[effort],
                          f'stroke-dasharray="{DASHES[pattern]}"'))
    parts += [f'<circle cx="{60 + WIDTH * across.at(x):.1f}" cy="{TOP + HEIGHT * (1 - up.at(y)):.1f}" r="4" '
              'fill="none" stroke="black"/>' for x, y in goals]
    below = TOP + HEIGHT + 70
    parts += [f'<text x="{x}" y="{below}" fill="{EFFORTS[name]}">{name}</text>'
              for x, name in ((60, "normal"), (115, "fast"))]
    parts.append(f'<text x="155" y="{below}">3D stencil, dense power law dashed; rings: goals</text>')
    path.write_text(page(60 + WIDTH + 60, below + 20, parts), encoding="utf-8")
