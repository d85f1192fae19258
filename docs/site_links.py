"""A hook of mkdocs that adds files outside of docs/ to the site if a page links to them."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?)\)")
SITE = "linked/"


def find_target(page: str, link: str, known: Files) -> str | None:
    """Return the path, from the top of the tree, of the file that *page* of docs/ links to; of a folder, its README.

    None if the file is a page of the site already, is outside of the tree, or does not exist.
    """
    path = normpath(PurePosixPath("docs", page).parent / link)
    if (ROOT / path).is_dir():
        path += "/README.md"
    page_of_ours = known.get_file_from_path(path.removeprefix("docs/")) if path.startswith("docs/") else None
    shown = page_of_ours is not None and page_of_ours.inclusion.is_included()
    return None if shown or path.startswith("..") or not (ROOT / path).is_file() else path


def on_files(files: Files, *, config: Any) -> Files:
    """Add each linked file below `linked/`, and the files that it links to in turn."""
    left = [(file.src_uri, Path(file.abs_src_path or "")) for file in files.documentation_pages()]
    while left:
        page, source = left.pop()
        for _, link, _ in LINK.findall(source.read_text()):
            path = find_target(page, link, files)
            if path and SITE + path not in files.src_uris:
                files.append(File.generated(config, SITE + path, abs_src_path=str(ROOT / path)))
                if path.endswith(".md"):
                    left.append((str(PurePosixPath("..", path)), ROOT / path))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Rewrite links to files outside of docs/, and the links of those files, to their pages on the site."""
    uri = page.file.src_uri
    origin = "../" + uri.removeprefix(SITE) if uri.startswith(SITE) else uri

    def rewrite(match: re.Match[str]) -> str:
        text, link, anchor = match.groups()
        path, full = find_target(origin, link, files), normpath(PurePosixPath("docs", origin).parent / link)
        if path is None and (ROOT / full).is_dir():
            return text
        target = SITE + path if path else full.removeprefix("docs/")
        return f"[{text}]({relpath(target, str(PurePosixPath(uri).parent))}{anchor})"

    return LINK.sub(rewrite, markdown)
