"""The pictures of README.md and docs/report.md, made anew.

Python -m docs.report.pictures (offline extra, chromium).
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import harness
from harness import RunOptions
from tests.support.browser import chromium, media, resize, settled

HERE = Path(__file__).parent
PARTS = (".top", "#decision h1", ".warnings", "#board", "#fails-title")
"""What the numbers of docs/report.md mark, in their order."""
BADGES = """
arguments[0].forEach((selector, index) => {
  const part = document.querySelector(selector);
  if (!part) throw new Error(`nothing is ${selector}`);
  const box = part.getBoundingClientRect(), badge = document.createElement("b");
  badge.textContent = index + 1;
  badge.style = `position: absolute; left: ${Math.max(box.left - 34, 4)}px;
    top: ${box.top + 2}px; width: 26px; height: 26px; border-radius: 13px;
    background: #16191d; color: #fff; font: bold 15px/26px sans-serif;
    text-align: center; z-index: 9`;
  document.body.append(badge);
});
"""
SAVED_IMAGE = """
const done = arguments[0];
navigator.clipboard.write = async ([item]) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(",")[1]);
  reader.readAsDataURL(await item.getType("image/png"));
};
document.querySelector("#copy").click();
"""


def main() -> None:
    """Run the quickstart, and write the pictures beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        results = harness.run(
            HERE.parents[1] / "experiments" / "quickstart.toml",
            RunOptions(Path(folder) / "results"),
        )
        with chromium(Path(folder) / "profile") as driver:
            media(driver, prefers_color_scheme="light")
            resize(driver, 1280, 800)
            driver.get((results.folder / "report.html").as_uri())
            settled(driver)
            write_picture("first-screen-1280.png", screenshot(driver))
            image = driver.execute_async_script(SAVED_IMAGE)
            write_picture("query-card.png", image)
            driver.execute_script("document.querySelector('#said').textContent = ''")
            driver.execute_script(BADGES, PARTS)
            write_picture("annotated-1280.png", screenshot(driver))


def screenshot(driver: Any) -> str:
    """Return what the browser shows, as base64."""
    options = {"format": "png"}
    picture: str = driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    return picture


def write_picture(name: str, picture: str) -> None:
    """Write a picture that is given as base64."""
    (HERE / name).write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
