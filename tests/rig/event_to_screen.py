# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long after a process begins to compute the screen of topiary top shows it."""
import os
import subprocess
import sys
import time

from rig.paths import BUILD
from rig.terminal import Terminal

# Computes from "burn" on its input to "rest".
SWITCH = """import os, select
burns = False
print("ready", flush=True)
while True:
    if not burns or select.select([0], [], [], 0)[0]:
        burns = os.read(0, 99).endswith(b"burn")
    elif burns:
        sum(range(1000))
"""


def delays(hz, events):
    """Seconds, sorted, of events at equal distances over the period between two ticks."""
    times = []
    watched = subprocess.Popen([sys.executable, "-c", SWITCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    screen = None
    try:
        assert watched.stdout.readline() == b"ready\n"
        screen = Terminal(BUILD / "topiary", "top", f"--hz={hz}", f"--pid={watched.pid}")

        def busy():
            return [value for name, (value, *_) in screen.boxes().items() if name.startswith("Machine")]
        for i in range(events):
            screen.wait(lambda: busy() and busy()[0] < 0.01)
            later = time.monotonic() + i / events / hz
            while time.monotonic() < later:
                screen.read(0.01)
            begun = time.monotonic()
            os.write(watched.stdin.fileno(), b"burn")
            screen.wait(lambda: busy() and busy()[0] > 0.1, quiet=0)
            times.append(time.monotonic() - begun)
            os.write(watched.stdin.fileno(), b"rest")
    finally:
        watched.kill()
        watched.wait()
        if screen:
            screen.close()
    return sorted(times)
