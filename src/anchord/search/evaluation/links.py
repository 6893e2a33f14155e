"""Which document a link leads to, by the names that sites give their pages."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping

_PAGE_SUFFIX = re.compile(r"\.(?:md|markdown|mdx|html)$", re.IGNORECASE)
_INDEX_PAGE = re.compile(r"(?:^|/)(?:index|readme)$", re.IGNORECASE)


class LinkResolver:
    """Finds the document that a link leads to."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        """Index documents by the names that links give them.

        Args:
            documents: Texts by paths relative to one folder; only the paths matter.
        """
        self._path_by_name: dict[str, str] = {}
        self._paths_by_end: defaultdict[str, list[str]] = defaultdict(list)
        for path in documents:
            name = _PAGE_SUFFIX.sub("", path).lower()
            self._add_names(path, name)
            self._add_ends(path, name)

    def _add_names(self, path: str, name: str) -> None:
        folder = _INDEX_PAGE.sub("", name)
        for alias in (path.lower(), name, folder):
            self._path_by_name.setdefault(alias, path)

    def _add_ends(self, path: str, name: str) -> None:
        """Index a document by each end of its name, with and without `/index` or `/readme`."""
        parts = name.split("/")
        for depth in range(len(parts)):
            end = "/".join(parts[depth:])
            folder = _INDEX_PAGE.sub("", end)
            self._paths_by_end[end].append(path)
            if folder and folder != end:
                self._paths_by_end[folder].append(path)

    def resolve_link(self, linking_path: str, link_target: str, *, is_wiki: bool) -> str | None:
        """Return the document that a link leads to, None for none.

        A path is tried from the linking document's folder (from the top for "/..."), then as the
        end of a document's path: a site's links start at the site's root, which is often a folder
        deeper. Of several such documents, the one with most folders in common is taken. Last, the
        first folders of "/..." are left out: a site can lie below a prefix that no folder has, as
        in `/docs/x/`.

        Args:
            linking_path: The document with the link.
            link_target: The link without `#...`, decoded.
            is_wiki: It is a wiki link, which names the end of a path.
        """
        if not is_wiki:
            linked = self._resolve_path(linking_path, link_target)
            if linked is not None:
                return linked
        found = self._resolve_end(linking_path, link_target)
        is_from_top = link_target.startswith("/") and not link_target.startswith("//")
        if found is None and not is_wiki and is_from_top:
            return self._resolve_below_prefix(link_target)
        return found

    def _resolve_below_prefix(self, link_target: str) -> str | None:
        parts = [part for part in link_target.split("/") if part]
        below = ("/" + "/".join(parts[count:]) for count in range(1, len(parts)))
        found = (self._resolve_path("", path) for path in below)
        return next(filter(None, found), None)

    def _resolve_end(self, linking_path: str, link_target: str) -> str | None:
        normal = posixpath.normpath(link_target.lstrip("/")).lower()
        end = _PAGE_SUFFIX.sub("", normal).strip("/")
        while end.startswith("../"):
            end = end.removeprefix("../")
        candidates = self._paths_by_end.get(end, [])
        return min(
            candidates,
            key=lambda other: (-_count_shared_folders(linking_path, other), other),
            default=None,
        )

    def _resolve_path(self, linking_path: str, link_target: str) -> str | None:
        folder = posixpath.dirname(linking_path)
        if link_target.startswith("/"):
            folder = ""
        relative_target = link_target.lstrip("/")
        joined = posixpath.join(folder, relative_target)
        name = posixpath.normpath(joined).lower()
        if name == ".":
            name = ""
        path = self._path_by_name.get(name)
        if path is not None:
            return path
        page = _PAGE_SUFFIX.sub("", name)
        return self._path_by_name.get(page)


def _count_shared_folders(path: str, other: str) -> int:
    """Count the folders that two paths begin with together."""
    folders = path.split("/")[:-1]
    other_folders = other.split("/")[:-1]
    count = 0
    for folder, other_folder in zip(folders, other_folders, strict=False):
        if folder != other_folder:
            break
        count += 1
    return count
