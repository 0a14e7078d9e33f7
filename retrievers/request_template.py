"""Templates of requests with the query in them."""

from collections.abc import Mapping
from typing import Any

QUERY_PLACEHOLDER = "{query}"
DEPTH_PLACEHOLDER = "{depth}"


def fill_template(template: Any, query_text: str, depth: int) -> Any:
    """Return a template with the query and the depth; texts become data, never JSON.

    >>> fill_template({"q": "find {query}", "n": "{depth}"}, "a", 3)
    {'q': 'find a', 'n': 3}
    """
    if template == DEPTH_PLACEHOLDER:
        return depth
    if isinstance(template, str):
        text = template.replace(DEPTH_PLACEHOLDER, str(depth))
        return text.replace(QUERY_PLACEHOLDER, query_text)
    if isinstance(template, Mapping):
        return {
            key: fill_template(inner, query_text, depth)
            for key, inner in template.items()
        }
    if isinstance(template, list | tuple):
        return [fill_template(inner, query_text, depth) for inner in template]
    return template
