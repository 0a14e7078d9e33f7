"""The files that `.gitignore` names."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.dataset.text_rows import read_text

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
INSTALLED_FOLDER = "node_modules"
"""The folder of installed packages; it is ignored even if no rule names it."""


@dataclass(slots=True)
class IgnoredFiles:
    """The rules of the `.gitignore` files in a folder, below it and above it.

    Rules above it apply up to the repository's root, as in git, unless they ignore the
    root folder itself: the user chose it.
    """

    root: Path
    _rules: dict[Path, "GitIgnoreSpec | None"] = field(default_factory=dict)
    """Folder -> the rules in it; None if it has none."""
    _top: Path | None = None
    """The highest folder whose rules count; None: not looked for yet."""

    def is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        """Whether a rule names a path below the root; the nearest rule decides."""
        if is_folder and path.name == INSTALLED_FOLDER:
            return True
        return self._ruling(path, is_folder=is_folder)

    def _ruling(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the nearest rule about a path ignores it; False if none is."""
        for folder in self._folders_above(path):
            rules = self._rules_of(folder)
            if rules is None:
                continue
            relative = path.relative_to(folder).as_posix()
            ruling = rules.check_file(f"{relative}/" if is_folder else relative)
            if ruling.include is not None:
                return ruling.include
        return False

    def _folders_above(self, path: Path) -> Iterator[Path]:
        """Yield the folders whose rules count for a path, the nearest first."""
        top = self._find_top()
        for folder in path.parents:
            yield folder
            if folder == top:
                return

    def _find_top(self) -> Path:
        """Return the highest folder whose rules count."""
        if self._top is None:
            self._top = self.root
            repository = _repository_root(self.root)
            if repository is not None and repository != self.root:
                self._top = repository
                if self._is_root_ignored(repository):
                    self._top = self.root
        return self._top

    def _is_root_ignored(self, repository: Path) -> bool:
        """Whether a rule above names the root, or a folder that it is in."""
        for folder in (self.root, *self.root.parents):
            if folder == repository:
                return False
            if self._ruling(folder, is_folder=True):
                return True
        return False

    def _rules_of(self, folder: Path) -> "GitIgnoreSpec | None":
        if folder not in self._rules:
            self._rules[folder] = _read_rules(folder / IGNORE_FILE)
        return self._rules[folder]


def _repository_root(folder: Path) -> Path | None:
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def _read_rules(path: Path) -> "GitIgnoreSpec | None":
    if not path.is_file():
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(read_text(path).splitlines())
