"""A real Chromium, driven over its DevTools pipe: enough to open a page, point, click, type and listen for errors."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 60
KEYS = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_chromium() -> str | None:
    """The browser on this machine, where there is one."""
    given = os.environ.get("UNSEED_CHROMIUM")
    return given or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One headless browser with one tab; use it in a ``with`` statement."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, answers = os.pipe(), os.pipe()

        def as_three_and_four() -> None:  # where --remote-debugging-pipe listens and answers
            inputs, outputs = os.dup(commands[0]), os.dup(answers[1])
            os.dup2(inputs, 3)
            os.dup2(outputs, 4)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            [executable, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=as_three_and_four,
        )
        os.close(commands[0])
        os.close(answers[1])
        self._out, self._in = commands[1], answers[0]
        self._numbers, self._received, self._session = itertools.count(1), b"", ""
        self.events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._session = ""
            self._ask("Browser.close")
        finally:
            os.close(self._out)
            os.close(self._in)
            self._process.wait(SECONDS)
            self._profile.cleanup()

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "") -> None:
        """Load a file from disk and forget what earlier pages did."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.events.clear()
        self._ask("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

    @property
    def complaints(self) -> list[str]:
        """Uncaught errors, console errors and warnings, and everything the browser logged."""
        self.run("1")  # whatever was said before has arrived after this
        found = []
        for event in self.events:
            what, detail = event["method"], event["params"]
            if what == "Runtime.exceptionThrown":
                found.append(detail["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif what == "Runtime.consoleAPICalled" and detail["type"] in ("error", "warning", "assert"):
                found.append(str(detail["args"]))
            elif what == "Log.entryAdded":
                found.append(detail["entry"]["text"])
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses asked for, the page itself included."""
        sent = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def run(self, script: str) -> Any:
        """Value of an expression in the page; promises are waited for."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """What a reader sees of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def centre(self, selector: str, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
        """A place in an element, in pixels of the window, scrolled into view."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', "
            "behavior: 'instant'}); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        return box[0] + x * box[2], box[1] + y * box[3]

    def move(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Move the mouse over an element."""
        px, py = self.centre(selector, x, y)
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=px, y=py)

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click with the mouse."""
        px, py = self.centre(selector, x, y)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self._ask("Input.dispatchMouseEvent", type=kind, x=px, y=py, button=button, clickCount=1)

    def press(self, key: str) -> None:
        """Press a key that has no letter, such as ArrowDown."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self._ask("Input.insertText", text=text)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the page."""
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self._whole()} if whole else {}))
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self._ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def _whole(self) -> dict[str, float]:
        size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        """The next message; events are kept."""
        until = time.monotonic() + SECONDS
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise ConnectionError("the browser has gone")
            self._received += piece
        line, self._received = self._received.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message
