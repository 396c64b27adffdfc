"""A real browser, Debian's Chromium, driven by its own driver: what people and screen readers get of the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
AXE = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")
RUN_AXE = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations))"


class Browser:
    """A browser with a profile of its own.

    Args:
        profile: an empty folder.
    """

    def __init__(self, profile: Path) -> None:
        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = Chrome(options=options, service=ChromeService(executable_path=DRIVER))
        self.driver.set_script_timeout(60)

    def look(self, width: int, scheme: str, height: int = 900) -> None:
        """Sees from now on with a window so wide, in pixels, and prefers a color scheme, `light` or `dark`."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)

    def open(self, url: str, key: str) -> None:
        """Opens a page with a key as its password."""
        parts = urlsplit(url)
        self.driver.get(f"{parts.scheme}://any:{key}@{parts.netloc}{parts.path or '/'}")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script of the test's own returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def errors(self) -> list[str]:
        """What the console was told since it was last asked."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]

    def hosts(self) -> set[str]:
        """The hosts, with their ports, that pages asked since this was last called."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                parts = urlsplit(message["params"]["request"]["url"])
                if parts.scheme not in ("data", "chrome", "about"):
                    found.add(parts.netloc.rpartition("@")[2])
        return found

    def violations(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        self.driver.execute_script(AXE)
        found = self.driver.execute_async_script(RUN_AXE)
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
            for one in found
            if one["impact"] in SERIOUS
        ]

    def picture(self, path: Path) -> None:
        """Writes the whole page as a picture."""
        import base64

        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """It is gone."""
        self.driver.quit()


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser that is gone afterwards."""
    one = Browser(profile)
    try:
        yield one
    finally:
        one.close()
