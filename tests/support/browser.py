"""A real headless Chromium on pages of the file system, driven by Selenium."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
CHROMEDRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
)

needs_browser = pytest.mark.browser
NO_BROWSER = (
    "no chromium with its chromedriver is installed"
    if CHROMIUM is None or CHROMEDRIVER is None
    else ""
)
"""Why tests in a browser are skipped (`conftest.py`); "" where there is one."""


@contextmanager
def chromium(
    profile: Path,
    *,
    width: int = 1280,
    height: int = 900,
    downloads: Path | None = None,
) -> Iterator[Any]:
    """A fresh browser; `profile` is an empty folder of its own, `downloads` where it
    may put files.
    """
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    for flag in (
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.binary_location = str(CHROMIUM)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    driver.set_script_timeout(600)  # a busy machine draws slowly
    try:
        resize(driver, width, height)
        if downloads is not None:
            behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
            driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        yield driver
    finally:
        driver.quit()


def resize(driver: Any, width: int, height: int = 900) -> None:
    """Give the page a size, narrower than any window may be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def media(driver: Any, **features: str) -> None:
    """Emulate media features, such as prefers_color_scheme="dark"."""
    arguments = [
        {"name": name.replace("_", "-"), "value": value}
        for name, value in features.items()
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": arguments})


def complaints(driver: Any) -> list[str]:
    """What the console said since it was last asked: errors, warnings and broken
    policies alike.
    """
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def requests(driver: Any) -> list[str]:
    """Every URL asked for since it was last asked, but for the page itself and data."""
    urls = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            urls.append(message["params"]["request"]["url"])
    return [
        url
        for url in urls
        if not url.startswith(("file:", "data:", "chrome:", "about:"))
    ]


def settled(driver: Any) -> None:
    """Wait until the page has unpacked its evidence and drawn the first query."""
    driver.execute_async_script("""
        const done = arguments[0];
        const ready = () => document.documentElement.classList.contains("ready");
        const wait = () => (ready() ? setTimeout(done, 50) : setTimeout(wait, 20));
        wait();
    """)


def scroll_through(driver: Any) -> None:
    """Look at the whole page, so that every chart comes alive, and wait until the last
    one is drawn.
    """
    driver.execute_async_script("""
        const done = arguments[0];
        let y = 0;
        // What comes into view is told to the page between two frames.
        const frame = requestAnimationFrame;
        const after = (next) => frame(() => frame(() => setTimeout(next)));
        const busy = () => document.querySelector("figure.chart[aria-busy]");
        const drawn = () => busy() ? setTimeout(drawn, 20) : after(done);
        const step = () => {
          scrollTo(0, y);
          y += 600;
          if (y < document.documentElement.scrollHeight + 600) after(step);
          else { scrollTo(0, 0); drawn(); }
        };
        step();
    """)


def axe(driver: Any) -> list[str]:
    """Every violation of WCAG 2.2 AA that axe-core finds; skips where axe-core is not
    at hand.
    """
    script_path = os.environ.get("AXE_CORE", "")
    if not script_path or not Path(script_path).is_file():
        pytest.skip("AXE_CORE names no axe.min.js (npm pack axe-core)")
    driver.execute_script(Path(script_path).read_text(encoding="utf-8"))
    violations = driver.execute_async_script("""
        const done = arguments[0];
        const checks = (x) => [...x.any, ...x.all, ...x.none];
        const reasons = (x) => checks(x).map((check) => check.message).join("; ");
        const node = (x) => `${x.html.slice(0, 160)} (${reasons(x)})`;
        const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
        const nodes = (v) => v.nodes.slice(0, 5).map(node).join(" | ");
        axe.run(document, { runOnly: [...rules, "best-practice"] })
          .then((seen) => done(seen.violations.map((v) => v.id + ": " + nodes(v))));
    """)
    return list(violations)


def opened_again(driver: Any, page: str, selector: str, beginning: str) -> None:
    """Open a page again, each time in a new process, until an element's text begins so.

    What the store had is written in each of them: a busy Chromium sometimes shows a
    page an empty store, and then every page of that process.
    """
    from selenium.webdriver.support.ui import WebDriverWait

    stored = driver.execute_script("return { ...localStorage }")

    def shows(_: object) -> bool:
        driver.get("chrome://version")
        driver.get(page)
        driver.execute_script("Object.assign(localStorage, arguments[0])", stored)
        driver.refresh()
        text: str = driver.find_element("css selector", selector).text
        return text.startswith(beginning)

    WebDriverWait(driver, 60).until(shows, f"{selector} is not {beginning}")
