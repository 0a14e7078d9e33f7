"""YAML as nodes.

A few lines of aliases may stand for billions of values, and a value may contain itself.
Every scalar is text, so that the id 007 stays.
"""

import math
from collections import Counter
from collections.abc import Iterator

import yaml

MAX_GROWTH = 100
"""How many times as many characters as the text its values may have, at most."""
NULL_WORDS = ("~", "null", "Null", "NULL")
"""Without quotes they are empty texts, as nothing is."""


def compose_yaml(text: str) -> yaml.Node | None:
    """Return the value of a document as a node; None if it is empty.

    Raises:
        yaml.YAMLError: it is not YAML, a key occurs twice in one object, or aliases
            stand for too much.
        RecursionError: it is nested too deep.
    """
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    if node is not None and _expanded_length(node, {}) > MAX_GROWTH * len(text):
        problem = f"its aliases stand for more than {MAX_GROWTH} times its text"
        raise yaml.MarkedYAMLError(problem=problem)
    return node


def _expanded_length(node: yaml.Node, lengths: dict[int, float]) -> float:
    """Return the characters of the values in a node, with those of aliases.

    Infinite for a value that contains itself. Each node is checked on the way.
    """
    length = lengths.get(id(node))
    if length is None:
        # Only a value that contains itself is met again before its parts are added up.
        lengths[id(node)] = math.inf
        _check_node(node)
        length = 1 + sum(_expanded_length(part, lengths) for part in _parts_of(node))
        if isinstance(node, yaml.ScalarNode):
            length += len(node.value)
        lengths[id(node)] = length
    return length


def _check_node(node: yaml.Node) -> None:
    """Empty a null, and raise YAMLError for an object with a key twice."""
    if isinstance(node, yaml.MappingNode):
        keys = (key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in Counter(keys).most_common(1):
            if count > 1:
                problem = f"the key {key!r} occurs twice in one object"
                mark = node.start_mark
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
    elif isinstance(node, yaml.ScalarNode) and node.style is None:
        node.value = "" if node.value in NULL_WORDS else node.value


def _parts_of(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
