# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A program on a terminal of a given size; what its screen shows is known by pyte, a terminal emulator."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from rig.processes import patience
from rig.shown import number

sys.path.append("/usr/lib/python3/dist-packages")   # Debian's pyte, where python3 is not Debian's
import pyte     # noqa: E402

KEYS = {"left": b"\x1b[D", "right": b"\x1b[C", "up": b"\x1b[A", "down": b"\x1b[B", "home": b"\x1b[1~",
        "end": b"\x1b[4~", "F10": b"\x1b[21~"}
BOX = re.compile(r"\[(\S[^\[\]]*?)\s+(\S+)\]")


class Terminal:
    """Of a type that needs no more than pyte knows: others scroll and repeat by sequences that it ignores."""

    def __init__(self, *command, lines=30, columns=120, term="linux", **env):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.resize(lines, columns)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        env={**os.environ, "TERM": term, "LC_ALL": "C.UTF-8", **env})
        os.close(slave)

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)
        self.lines = None

    def read(self, seconds=0.1):
        """What comes until then, or the end. False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            new = os.read(self.master, 1 << 16)
        except OSError:     # the other side is closed
            new = b""
        self.bytes += new
        self.lines = None
        self.stream.feed(new)
        return bool(new)

    @property
    def display(self):
        """The lines of the screen; pyte makes them anew each time, which takes milliseconds."""
        self.lines = self.lines or self.screen.display
        return self.lines

    def wait(self, condition, seconds=30, quiet=0.05):
        """Until the condition holds, and nothing more comes for a moment, as a picture comes in parts; its value."""
        until = time.monotonic() + patience(seconds)
        while not (found := condition()) or quiet and select.select([self.master], [], [], quiet)[0]:
            assert (self.read() or found) and time.monotonic() < until, "\n".join(self.display)
        return found

    def press(self, key):
        os.write(self.master, KEYS.get(key, key.encode()))

    def end(self, seconds=30):
        """The exit status, and all that was written."""
        until = time.monotonic() + patience(seconds)
        while self.read() and time.monotonic() < until:
            pass
        return self.process.wait(patience(seconds)), self.bytes.decode(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def boxes(self):
        """{name: (value, part of the box that is coloured, its colour)}, in the order of the screen."""
        found = {}
        for y, line in enumerate(self.display):
            for match in BOX.finditer(line):
                colours = [self.screen.buffer[y][x].bg for x in range(match.start() + 1, match.end() - 1)]
                bar = [c for c in colours if c != "default" and not c == "black"]
                found[match[1].strip()] = (number(match[2]), len(bar) / len(colours), bar[0] if bar else None)
        return found
