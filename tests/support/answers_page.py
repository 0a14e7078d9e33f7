"""Pages on which people answer, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import chromium

PATIENCE = 60
"""Seconds; a busy browser is slow."""


@contextmanager
def downloading_browser(folder: Path) -> Iterator[Any]:
    """A fresh browser that may download, into its `downloads`."""
    (folder / "downloads").mkdir(parents=True)
    with chromium(folder / "profile", downloads=folder / "downloads") as browser:
        browser.downloads = folder / "downloads"
        yield browser


def begin(driver: Any, name: str = "ann") -> None:
    """Enter the judge's name; again if a busy browser lost the keys."""
    from selenium.webdriver.support.ui import WebDriverWait

    def has_begun(_: Any) -> bool:
        field = driver.find_element("css selector", "#judge")
        if field.is_displayed():
            field.clear()
            field.send_keys(f"{name}\n")
        return not driver.find_element("css selector", "#judge").is_displayed()

    WebDriverWait(driver, PATIENCE).until(has_begun, "the name is not taken")


def press(driver: Any, keys: str) -> None:
    """Press keys, wherever the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver, duration=0).send_keys(keys).perform()


def text(driver: Any, selector: str) -> str:
    """The visible text of the first element."""
    visible: str = driver.find_element("css selector", selector).text
    return visible


def exported(driver: Any, file_name: str) -> Path:
    """Press Export, and return the file under a name of its own."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.find_element("css selector", "#export").click()
    file: Path = driver.downloads / file_name
    WebDriverWait(driver, PATIENCE, 0.05).until(
        lambda _: file.exists() and file.stat().st_size, "nothing was downloaded"
    )
    return file.rename(driver.downloads / f"{time.monotonic_ns()}.jsonl")
