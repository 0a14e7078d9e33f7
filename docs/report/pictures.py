"""Make the pictures and the printed pages of this folder anew: the reports of ten cases, and the page over all of them.

    python -m docs.report.pictures [FOLDER]

Needs the extra `offline`, chromium with its chromedriver, and a few minutes. The results go to FOLDER, or to a
temporary folder that is removed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import harness
from harness import Options
from tests.support.browser import chromium, media, resize

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
ENGLISH = "datasets/survey-templates-en"
"""Seen from the project, as experiments name it."""
BOTH = f'{{ path = "{ENGLISH}", queries = ["queries.json", "queries-extended.json"] }}'
HEAD = """
name = "{name}"
dataset = {dataset}
primary = "nDCG@10"
measures = ["nDCG@10", "P@5", "R@10", "F1@10", "RR@10", "AP@10", "Success@10"]
[statistics]
margin = 0.02
"""
MODEL = '{ kind = "sentence-transformers", model = "sentence-transformers/all-MiniLM-L6-v2" }'
SIZES = {"a4": (8.27, 11.69)}


class Shot(NamedTuple):
    """One picture: a case, what is looked at, and how."""

    case: str
    name: str
    height: int
    at: str = ""
    """The fragment of the address: a section, or a state of the page."""
    width: int = 1280
    dark: bool = False


SHOTS = (
    Shot("quickstart", "decision-1280", 800),
    Shot("quickstart", "decision-1920-dark", 1000, width=1920, dark=True),
    Shot("quickstart", "decision-400", 800, width=400),
    Shot("quickstart", "slices-1280", 800, at="slices"),
    Shot("quickstart", "queries-1280", 1200, at="a=minilm&b=hybrid&q=e053"),
    Shot("quickstart", "trust-1280", 1200, at="trust"),
    Shot("one-retriever", "one-retriever-1280", 800),
    Shot("thirteen-queries", "thirteen-queries-1280", 800),
    Shot("twelve-retrievers", "twelve-retrievers-1280", 1000),
    Shot("failed-retriever", "failed-retriever-1280", 800),
    Shot("japanese", "japanese-1280", 800),
    Shot("arabic", "arabic-1280", 1200, at="q=q0"),
    Shot("unlabelled", "unlabelled-1280", 1100),
    Shot("index", "index-1280", 1500),
    Shot("index", "index-400-dark", 1250, width=400, dark=True),
)
PRINTED = tuple((case, "a4") for case in ("quickstart", "twelve-retrievers", "japanese", "unlabelled"))
ARABIC = {
    "إجازة": "يحصل كل موظف على خمسة وعشرين يوم إجازة في السنة.",
    "عمل عن بعد": "يمكن العمل من المنزل يومين في الأسبوع بعد موافقة المدير.",
    "نفقات السفر": "تدفع الشركة تكاليف القطار والفندق عند تقديم الإيصالات.",
    "مرض": "أبلغ مديرك في اليوم الأول من المرض قبل الساعة التاسعة.",
    "تدريب": "لكل موظف ميزانية سنوية للدورات والكتب والمؤتمرات.",
    "رواتب": "تدفع الرواتب في اليوم الأخير من كل شهر.",
}
ASKED = ("كم يوم إجازة في السنة؟", "هل يمكن العمل من المنزل؟", "من يدفع تكاليف الفندق؟", "ماذا أفعل في يوم المرض؟",
         "هل توجد ميزانية للدورات؟", "متى تدفع الرواتب؟")  # fmt: skip


def written(folder: Path, name: str, retrievers: str, dataset: str = BOTH) -> Path:
    """An experiment file."""
    path = folder / f"{name}.toml"
    path.write_text(HEAD.format(name=name, dataset=dataset) + retrievers, encoding="utf-8")
    return path


def block(name: str, rest: str) -> str:
    return f'\n[[retrievers]]\nname = "{name}"\n{rest}\n'


def pages(folder: Path) -> dict[str, Path]:
    """Run the cases; return case -> its page, and that of all of them."""
    results = folder / "results"
    three = block("bm25", 'kind = "bm25"') + block("minilm", f"encoder = {MODEL}")
    three += block("hybrid", 'kind = "fusion"\nof = ["bm25", "minilm"]')
    twelve = "".join(
        block(f"bm25-with-k1-of-{i / 10:.1f}-of-stemmed-words-of-titles-and-texts", f'kind = "bm25"\nk1 = {i / 10:.1f}')
        for i in range(1, 13)
    )
    failing = three + block("unknown", 'encoder = { kind = "sentence-transformers", model = "nobody/nothing" }')
    ended = {
        "quickstart": harness.run(PROJECT / "experiments" / "quickstart.toml", Options(results)),
        "thirteen-queries": harness.run(written(folder, "thirteen-queries", three, f'"{ENGLISH}"'), Options(results)),
        "twelve-retrievers": harness.run(written(folder, "twelve-retrievers", twelve), Options(results)),
        "failed-retriever": harness.run(written(folder, "failed-retriever", failing), Options(results)),
        "one-retriever": harness.run(
            written(folder, "one-retriever", block("bm25", 'kind = "bm25"')), Options(results)
        ),
        "arabic": harness.run(written(folder, "arabic", three, f'"{arabic(folder)}"'), Options(results)),
        "japanese": harness.run(PROJECT / "experiments" / "japanese.toml", Options(results)),
        "unlabelled": harness.run(written(folder, "unlabelled", three, f'"{unlabelled(folder)}"'), Options(results)),
    }
    found = {case: one.folder / "report.html" for case, one in ended.items()}
    found["index"] = results / "index.html"
    return {case: without_places(case, page, folder) for case, page in found.items()}


def without_places(case: str, page: Path, folder: Path) -> Path:
    """A copy of a page that does not say where this machine keeps the project and the results."""
    text = page.read_text(encoding="utf-8")
    for place in (folder.resolve(), PROJECT):
        text = text.replace(f"{place.as_posix()}/", "")
    copy = folder / f"{case}.html"
    copy.write_text(text, encoding="utf-8")
    return copy


def unlabelled(folder: Path) -> str:
    """The templates with questions, and no label."""
    place = folder / "questions"
    shutil.copytree(ENGLISH, place, ignore=shutil.ignore_patterns("*.json"))
    rows = json.loads((Path(ENGLISH) / "queries.json").read_text(encoding="utf-8"))
    (place / "queries.txt").write_text("".join(f"{row['query']}\n" for row in rows), encoding="utf-8")
    return place.name


def arabic(folder: Path) -> str:
    """Six documents and six questions that read from right to left."""
    place = folder / "arabic-data"
    place.mkdir(exist_ok=True)
    for number, (title, text) in enumerate(ARABIC.items()):
        (place / f"d{number}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    rows = [{"id": f"q{i}", "query": query, "relevant_documents": [f"d{i}"]} for i, query in enumerate(ASKED)]
    (place / "queries.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return place.name


def take(driver: Any, shot: Shot, page: Path) -> None:
    """Take one picture, with every chart drawn."""
    media(driver, prefers_color_scheme="dark" if shot.dark else "light")
    resize(driver, shot.width, shot.height)
    driver.get("about:blank")
    driver.get(f"{page.as_uri()}#{shot.at}")
    driver.execute_async_script("""
        const done = arguments[0];
        const look = document.getElementById("look-list") && location.hash.includes("q=");
        setTimeout(() => {
          if (look) document.getElementById("queries").scrollIntoView();
          setTimeout(done, 1200);
        }, 800);
    """)
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    (HERE / f"{shot.name}.png").write_bytes(base64.b64decode(data))


def print_out(driver: Any, case: str, size: str, page: Path) -> None:
    """Print one page, as a browser does it."""
    width, height = SIZES[size]
    media(driver, prefers_color_scheme="light")
    resize(driver, 1280)
    driver.get("about:blank")
    driver.get(page.as_uri())
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": width, "paperHeight": height})
    (HERE / f"{case}-{size}.pdf").write_bytes(base64.b64decode(printed["data"]))


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # a model that nobody has fails at once
    os.chdir(PROJECT)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1]) if sys.argv[1:] else Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        found = pages(folder)
        with chromium(Path(place) / "profile") as driver:
            for shot in SHOTS:
                take(driver, shot, found[shot.case])
            for case, size in PRINTED:
                print_out(driver, case, size, found[case])


if __name__ == "__main__":
    main()
