# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary trace html: the page has what was recorded, whatever its names are, and shows it in a browser."""
import json
import re

import pytest
from rig.browser import PROGRAM, Browser
from rig.command import printed, topiary, trace_made
from rig.machines import machines
from rig.paths import CACHE
from rig.shown import number

TICKS = 130
HOSTILE = "</script><img src=x onerror=\"document.title='hit'\"><!--<script>'\\\\n&amp;\u2028\u00e9"


def page(path, *options):
    return printed("trace", "html", path, *options)


def data(html):
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def values(document, metric, level):
    """[{row: value}] of the steps."""
    own = next(m for m in document["metrics"] if m["name"] == metric)
    return [{name: x / 1000 * own["most"][of] for (_, of, name), x in zip(own["rows"], step) if name.startswith(level)}
            for step in own["values"]]


@pytest.fixture(scope="module", name="made")
def fixture_made(tmp_path_factory):
    return trace_made(tmp_path_factory.mktemp("page") / "made.trace")


@pytest.fixture(scope="module", name="browser")
def fixture_browser(tmp_path_factory):
    if not PROGRAM:
        pytest.skip("no chromium here")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def test_page_has_all_ticks_of_a_small_trace(made):
    document = data(page(made))
    assert (document["node"], document["ticks"], document["merged"], document["open_end"]) == ("made", TICKS, 1, False)
    assert document["times"] == list(range(1, TICKS + 1))
    exported = json.loads(printed("trace", "export", made, "--json", "--level=Core"))
    cycles = next(i for i, m in enumerate(exported["metrics"]) if m["name"] == "cycles")
    for at, step in enumerate(values(document, "cycles", "Core")):
        # three digits
        assert list(step.values()) == pytest.approx(exported["samples"][at]["values"][cycles], rel=6e-3)


@pytest.mark.slow
def test_large_trace_is_added_up_to_a_page_below_5_mb(tmp_path):
    path = trace_made(tmp_path / "t", "Package:2 [numa] L3:8 Core:8 PU:2", 1000)
    html = page(path)
    document = data(html)
    n = document["merged"]
    assert len(html.encode()) < 5e6 and 1 < n < 10 and len(document["times"]) == -(-1000 // n)
    assert page(path, "--metric=cycles") and data(page(path, "--metric=cycles"))["merged"] == 1
    exported = json.loads(printed("trace", "export", path, "--json", "--level=Package"))
    index = {m["name"]: i for i, m in enumerate(exported["metrics"])}
    samples = [s["values"] for s in exported["samples"]]
    for at in (0, 1, len(document["times"]) - 1):
        ticks = samples[at * n:(at + 1) * n]
        rates = [sum(t[index["cycles"]][i] for t in ticks) / len(ticks) for i in range(2)]
        assert list(values(document, "cycles", "Package")[at].values()) == pytest.approx(rates, rel=6e-3)
        # A gauge has its last value, not a sum.
        assert (list(values(document, "memory_used", "Package")[at].values())
                == pytest.approx(ticks[-1][index["memory_used"]], rel=6e-3))


@pytest.mark.parametrize("name", machines())
def test_pages_of_real_machines(name, tmp_path):
    """What an object contains follows it, one level deeper, and the PUs add up to the machine."""
    path = trace_made(tmp_path / "t", CACHE / "machines" / f"{name}.xml", 3)
    document = data(page(path))
    for metric in document["metrics"]:
        depths = [depth for depth, *_ in metric["rows"]]
        assert depths[0] == 0 and all(1 <= depth <= before + 1 for before, depth in zip(depths, depths[1:]))
    whole = next(iter(values(document, "cycles", "Machine")[0].values()))
    own = document["metrics"][0]
    pus = [x / 1000 * own["most"][of] for (_, of, row), x in zip(own["rows"], own["values"][0])
           if re.search(r"\bPU \d+", row)]
    assert sum(pus) == pytest.approx(whole, rel=6e-3)


def test_hostile_names_stay_text(tmp_path):
    html = page(trace_made(tmp_path / "t", ticks=2, node=HOSTILE))
    assert data(html)["node"] == HOSTILE
    assert html.count("<script") == 2 and html.count("</script") == 2 and "<img" not in html and "<!--" not in html


def test_hostile_name_of_an_object_stays_text(tmp_path):
    name = "</script><script>alert(1)//\"\\"
    html = page(trace_made(tmp_path / "t", ticks=2, name=name))
    assert [row for _, _, row in data(html)["metrics"][0]["rows"] if "<" in row] == [name]
    assert html.count("<script") == 2 and html.count("</script") == 2


def test_lost_blocks_are_a_step_of_their_own(made, tmp_path):
    """A recorder on a full disk loses blocks: what was counted is divided by the time that it was counted in."""
    whole = made.read_bytes()

    def end(at):
        return at + 32 + int.from_bytes(whole[at + 8:at + 12], "little")
    first = end(8)
    (tmp_path / "late").write_bytes(whole[:end(first)] + whole[end(end(first)):-16])
    done = topiary("trace", "html", tmp_path / "late", "--metric=cycles")
    document = data(done.stdout)
    assert (done.returncode == 0 and document["open_end"]
            and document["times"] == [*range(1, 61), *range(121, TICKS + 1)])
    whole_values = values(data(page(made, "--metric=cycles")), "cycles", "Machine")
    assert values(document, "cycles", "Machine") == [pytest.approx(v, rel=6e-3)
                                                     for v in whole_values[:60] + whole_values[120:]]


def test_absent_values_are_null(made, tmp_path):
    (tmp_path / "f").write_text("flops {Core, flops}\nnegative {PU, cycles - 2 * cycles}\n")
    document = data(page(made, "--formulas", tmp_path / "f"))
    assert {x for step in document["metrics"][-2]["values"] for x in step} == {None}
    assert all(x < 0 for step in document["metrics"][-1]["values"] for x in step)


@pytest.mark.parametrize("args, status, why", [
    (["{made}", "--metric=nix"], 1, "{made}: no event or formula 'nix'"),
    (["{made}", "--level=nix"], 1, "{made}: the trace has no level 'nix'"),
    (["{made}", "--accumulate"], 64, "--accumulate and --per-tick apply to summary, show, replay and export only"),
    (["{empty}"], 1, "{empty}: has no ticks"),
])
def test_bad_input(made, tmp_path, args, status, why):
    words = {"made": made, "empty": trace_made(tmp_path / "empty", ticks=0)}
    done = topiary("trace", "html", *(a.format(**words) for a in args))
    assert (done.returncode, done.stdout) == (status, "") and why.format(**words) in done.stderr, done.stderr


# --- in the browser


def boxes(browser):
    """{name: (value, part of the bar, hue)}"""
    script = """boxes.map(b => [b.name, b.value.textContent,
                              b.bar.getAttribute("width") / b.w, b.bar.getAttribute("fill")])"""
    return {name: (value, part, float(re.match(r"hsl\(([0-9.]+)", fill)[1]))
            for name, value, part, fill in browser.run(script)}


def open_page(browser, tmp_path, html):
    (tmp_path / "page.html").write_text(html)
    browser.open((tmp_path / "page.html").as_uri())
    bad = [m for m in browser.messages if m.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]
    requests = [m["params"]["request"]["url"] for m in browser.messages
                if m.get("method") == "Network.requestWillBeSent"]
    assert not bad and requests == [(tmp_path / "page.html").as_uri()]


def test_browser_shows_the_tree_over_time(made, browser, tmp_path):
    html = page(made)
    document = data(html)
    open_page(browser, tmp_path, html)
    assert (browser.run("document.title") == "made"
            and f"{TICKS} ticks" in browser.run("document.getElementById('about').textContent"))
    for metric in ("l3_misses", "memory_used", "cycles"):
        own = next(i for i, m in enumerate(document["metrics"]) if m["name"] == metric)
        browser.run(f"at('metric').value = {own}; at('metric').onchange()")
        for at in (0, 60, TICKS - 1):
            browser.run(f"step.value = {at}; step.oninput()")
            assert f"{at + 1}.000 of {TICKS}.000 s" in browser.run("at('time').textContent")
            seen, m = boxes(browser), document["metrics"][own]
            assert list(seen) == [row[2] for row in m["rows"]]
            for (_, level, name), x in zip(m["rows"], m["values"][at]):
                value, part, hue = seen[name]
                assert number(value) == pytest.approx(x / 1000 * m["most"][level], rel=6e-3)
                assert part == pytest.approx(x / 1000) and hue == pytest.approx(120 * (1 - x / 1000), abs=1)
    # Each box is inside that of its parent, beside its siblings.
    rectangles = browser.run("boxes.map(b => [b.depth, +b.bar.getAttribute('x'), +b.bar.getAttribute('y'), b.w, b.h])")
    path = []
    for depth, x, y, w, h in rectangles:
        del path[depth:]
        if path:
            left, top, wide, high = path[-1]
            assert left < x and top < y and x + w < left + wide and y + h < top + high
        path.append((x, y, w, h))


@pytest.mark.parametrize("topology, level", [("Core:1 PU:1", "Machine"), ("Core:1 PU:2", "PU"),
                                             ("Package:2 [numa] L3:2 Core:2 PU:2", "PU")])
def test_letters_of_few_boxes_are_no_larger_than_those_of_many(browser, tmp_path, topology, level):
    open_page(browser, tmp_path, page(trace_made(tmp_path / "few.trace", topology, 8), f"--level={level}"))
    assert 5 < browser.run("boxes[0].value.getBoundingClientRect().height") < 25


def test_browser_shows_two_metrics_in_a_box(made, browser, tmp_path):
    html = page(made, "--metric=cycles,memory_used")
    cycles, memory = data(html)["metrics"]
    assert (cycles["name"], memory["name"]) == ("cycles", "memory_used")
    open_page(browser, tmp_path, html)
    one = boxes(browser)
    browser.run("at('beside').value = 1; at('beside').onchange()")
    two = boxes(browser)
    known = {row[2]: x / 1000 * memory["most"][row[1]] for row, x in zip(memory["rows"], memory["values"][0])}
    assert list(one) == list(two) and set(known) < set(two)
    for name, (value, part, hue) in two.items():
        first, second = value.split(" · ")
        assert first == one[name][0] and (part, hue) == pytest.approx(one[name][1:])
        assert number(second.removesuffix("B")) == pytest.approx(known[name], rel=6e-3) if name in known \
            else second == "-"


def test_browser_plays(made, browser, tmp_path):
    open_page(browser, tmp_path, page(made))
    browser.run("at('speed').value = '60'; at('play').click()")
    assert browser.run("at('play').textContent") == "Pause"
    browser.run("new Promise(done => { const wait = () => +step.value > 10 ? done() : setTimeout(wait, 10); wait(); })")
    browser.run("at('play').click()")
    stopped = browser.run("+step.value")
    assert browser.run("at('play').textContent") == "Play" and 10 < stopped < TICKS
    assert browser.run("new Promise(done => setTimeout(() => done(+step.value), 200))") == stopped


def test_browser_shows_hostile_names_as_text(browser, tmp_path):
    open_page(browser, tmp_path, page(trace_made(tmp_path / "t", ticks=2, node=HOSTILE)))
    assert (browser.run("at('node').textContent") == HOSTILE == browser.run("document.title")
            and browser.run("document.images.length") == 0)
