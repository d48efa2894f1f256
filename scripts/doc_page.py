#!/usr/bin/env python3
"""A page as Doxygen is to read it (FILTER_PATTERNS in docs/Doxyfile): scripts/doc_page.py PAGE.md

Doxygen knows no headings by the anchors that GitHub gives them, and no page by its path. So the title and each heading
get a name, which links use; and a page that is named in backticks, `docs/testing.md`, becomes a link. A link to another
file leads to its copy in sources/, which scripts/document makes. Code stays as it is.
"""
import importlib.util
import pathlib
import re
import sys
from importlib.machinery import SourceFileLoader

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True  # Every file in .ci/check is a check.
spec = importlib.util.spec_from_loader("links", SourceFileLoader("links", str(ROOT / ".ci/check/links")))
links = importlib.util.module_from_spec(spec)
spec.loader.exec_module(links)

# The pages of the site, as docs/Doxyfile lists them.
PAGES = ["README.md", "CHANGELOG.md", "SECURITY.md", "bazel/README.md",
         *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"`((?:docs/|bazel/)?[\w-]+\.md)`")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([\w-]+))?\)")


def key(page):
    return re.sub(r"\W+", "-", page.removeprefix("docs/").removesuffix(".md").lower())


def filtered(page, text):
    """The text of `page`, a path from the root."""
    def named(found):
        return f"[{found.group(1)}](@ref {key(found.group(1))})" if found.group(1) in PAGES else found.group()

    def link(found):
        path, anchor = found.groups()
        target = str((ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT)) if path else page
        if target not in PAGES:
            return f"](sources/{target})"
        return f"](@ref {key(target)}{f'-{anchor}' if anchor else ''})"

    anchors, out, code = iter(links.slugs(text)), [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        code ^= fence
        if code or fence:
            out.append(line)
        elif heading := re.match(r"(#{1,6}) +(.*?) *#*$", line):
            anchor = next(anchors)
            name = f"{key(page)}-{anchor}" if heading.group(1) != "#" else key(page)
            label = f" {{#{name}}}" if name != "index" else ""  # Doxygen names the main page itself.
            out.append(f"{heading.group(1)} {heading.group(2)}{label}")
        else:
            out.append(LINK.sub(link, NAMED.sub(named, line)))
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".md"):
        sys.exit(f"doc_page.py: it takes a page\n{__doc__}")
    file = pathlib.Path(sys.argv[1]).resolve()
    sys.stdout.write(filtered(str(file.relative_to(ROOT)), file.read_text()))
