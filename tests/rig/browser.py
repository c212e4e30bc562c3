# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Chromium without a window, driven over a pipe by its DevTools protocol (JSON messages that end with NUL)."""
import json
import os
import select
import shutil
import subprocess

PROGRAM = os.environ.get("TOPIARY_BROWSER") or shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, profile):
        asked, ask = os.pipe()
        self.answers, answer = os.pipe()
        self.ask, self.rest, self.last = ask, b"", 0
        self.messages = []      # all that are no answers
        # 3 and 4 are what the browser reads and writes.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{asked} 4>&{answer}', "bash", PROGRAM, "--headless", "--no-sandbox",
             "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--window-size=1400,1000"],
            pass_fds=(asked, answer), stderr=subprocess.DEVNULL)
        os.close(asked)
        os.close(answer)
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def read(self):
        while b"\0" not in self.rest:
            assert select.select([self.answers], [], [], 60)[0], "the browser is silent"
            more = os.read(self.answers, 1 << 20)
            assert more, "the browser has ended"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.last += 1
        os.write(self.ask, json.dumps({"id": self.last, "method": method, "params": params,
                                       **({"sessionId": session} if session else {})}).encode() + b"\0")
        while (message := self.read()).get("id") != self.last:
            self.messages.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, url):
        """The page's requests and errors are then in self.messages."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable", self.session)
        self.messages.clear()
        self.call("Page.navigate", self.session, url=url)
        while not any(m.get("method") == "Page.loadEventFired" for m in self.messages):
            self.messages.append(self.read())

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", self.session, expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ask)
        os.close(self.answers)
