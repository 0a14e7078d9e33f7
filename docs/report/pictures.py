"""Make the annotated picture of docs/report.md anew.

Python -m docs.report.pictures (offline extra, chromium).
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import harness
from harness import RunOptions
from tests.support.browser import chromium, resize

HERE = Path(__file__).parent
PARTS = (
    "#decision h1",
    "#decision .lead, #decision .next",
    ".alerts",
    "[aria-label=Leaderboard]",
    "nav[aria-label=Sections]",
)
"""What the numbers of docs/report.md mark, in their order."""
BADGES = """
arguments[0].forEach((selector, index) => {
  const part = document.querySelector(selector);
  if (!part) throw new Error(`nothing is ${selector}`);
  const box = part.getBoundingClientRect(), badge = document.createElement("b");
  badge.textContent = index + 1;
  badge.style = `position: absolute; left: ${Math.max(box.left - 34, 4)}px;
    top: ${box.top + 2}px; width: 26px; height: 26px; border-radius: 13px;
    background: #c2185b; color: #fff; font: bold 15px/26px sans-serif;
    text-align: center; z-index: 9`;
  document.body.append(badge);
});
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        results = harness.run(
            HERE.parents[1] / "experiments" / "quickstart.toml",
            RunOptions(Path(place) / "results"),
        )
        with chromium(Path(place) / "profile") as driver:
            resize(driver, 1280, 800)
            driver.get((results.folder / "report.html").as_uri())
            driver.execute_script(BADGES, PARTS)
            data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})[
                "data"
            ]
    (HERE / "annotated-1280.png").write_bytes(base64.b64decode(data))


if __name__ == "__main__":
    main()
