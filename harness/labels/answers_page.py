"""A page on which people answer, as one HTML file.

`judging_page` and `preference_page` say what is on it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.pages import content_security_policy, page_head, script_json
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file

PAGE_BEGINNINGS = (b"<!doctype html>", b"<!DOCTYPE html>")
"""A file that begins otherwise is no page, and is not overwritten."""
SHARED_SCRIPTS = ("mark_words.js", "kept_answers.js")
SHARED_STYLE = "judge.css"


def render_answers_page(
    title: str,
    template: str,
    page_data: object,
    *,
    styles: Sequence[str] = (),
    words: Mapping[str, object],
) -> str:
    """Return a page as one HTML text.

    Args:
        title: of the window.
        template: the name of its template, and of its script.
        page_data: what the script shows, for JSON.
        styles: style sheets besides the shared one.
        words: the other variables of the template.
    """
    loader = jinja2.PackageLoader("harness.labels")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )

    def source(file_name: str) -> str:
        return loader.get_source(environment, file_name)[0]

    style = "".join(map(source, (SHARED_STYLE, *styles)))
    scripts = list(map(source, (*SHARED_SCRIPTS, f"{template}.js")))
    return environment.get_template(f"{template}.html").render(
        words,
        head=page_head(
            title,
            content_security_policy(scripts, style),
            Markup(style),  # noqa: S704  (files of this package)
        ),
        scripts=list(map(Markup, scripts)),
        data=Markup(script_json(page_data)),  # noqa: S704  (escaped for a script)
    )


def write_answers_page(path: Path, page: str) -> None:
    """Write a page.

    Raises:
        InputError: it cannot be written, or would overwrite another kind of file.
    """
    refuse_other_file(path)
    with explain_write_errors(path), open_text_file(path, "w") as file:
        file.write(page)


def refuse_other_file(path: Path) -> None:
    """Refuse to overwrite a file that is no page.

    Raises:
        InputError: there is one, or it cannot be read.
    """
    with explain_write_errors(path):
        if path.is_file() and not path.read_bytes().startswith(PAGE_BEGINNINGS):
            problem = "exists, and is not a page"
            remedy = "name another file with --output"
            raise InputError(Problem(str(path), problem, remedy))
