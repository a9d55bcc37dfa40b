# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: pages, navigation, links to the API reference, search, and a check of every link of the site.

The site has the paths of the repository, so that links between files are links between pages. README.md is the home
page. Source files that pages link to become pages too. doxygen has written the API reference to build/docs/api, and its
index to build/docs/api.tag.
"""

import functools
import html
import json
import logging
import pathlib
import posixpath
import re
import shutil
import urllib.parse
import xml.etree.ElementTree

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link

log = logging.getLogger("mkdocs.plugins.lockstep")
root = pathlib.Path(__file__).resolve().parents[2]
api = root / "build/docs/api"

LINK = re.compile(r"(\]\()([^()#:\s]+)((?:#[^()\s]*)?\))")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".cuh": "cpp", ".cu": "cpp", ".py": "python", ".sh": "bash"}


# ---------------------------------------------------------------------------------------------------------------- pages


@functools.cache
def pages():
    """Returns the paths of all Markdown pages of the repository."""
    found = [p for p in (*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("benchmarks/**/*.md"))]
    return sorted(str(p.relative_to(root)) for p in found)


def targets(page):
    """Yields the path in the repository of each file that a page links to."""
    for _, target, _ in LINK.findall((root / page).read_text()):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if (root / path).is_file():
            yield path


@functools.cache
def linked():
    """Returns the paths of files that pages link to and that are no pages."""
    return sorted({target for page in pages() for target in targets(page)} - set(pages()))


def is_image(path):
    return path.endswith((".svg", ".png"))


def on_files(files, config):
    docs = pathlib.Path(config.docs_dir)
    theme = [file for file in files if docs not in pathlib.Path(file.abs_src_path).parents]
    theme += [file for file in files if file.src_uri.startswith("javascripts/")]
    ours = [path if path in pages() or is_image(path) else path + ".md" for path in (*pages(), *linked())]
    return Files(theme + [File(path, str(root), config.site_dir, False) for path in ours])


def on_page_read_source(page, config):
    source = root / page.file.src_uri.removesuffix(".md")
    if page.file.src_uri in pages():
        return None
    return f"# {source.name}\n\n````` {LANGUAGES.get(source.suffix, 'text')}\n{source.read_text()}\n`````\n"


def on_page_markdown(markdown, page, config, files):
    """Makes links to source files links to their pages, and separates lists from the paragraph before them."""

    def replaced(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[2]))
        return f"{link[1]}{link[2]}.md{link[3]}" if path in linked() and not is_image(path) else link[0]

    lines, code = [], False
    for line in LINK.sub(replaced, markdown).split("\n"):
        code ^= line.lstrip().startswith("```")
        in_paragraph = lines and lines[-1] and not re.match(r"[-\s]|\d+\. ", lines[-1])
        if not code and in_paragraph and re.match(r"- |1\. ", line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------- navigation


def sections(text, level):
    """Yields heading and text of each section whose heading has this level."""
    for section in re.split(f"^{'#' * level} ", text, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        yield heading, body


def entries(page, text=None):
    """Returns the links in the tables of a page, or of a text of it, as entries of the navigation."""
    rows = [line.split("|")[1] for line in (text or (root / page).read_text()).splitlines() if line.startswith("|")]
    found = re.findall(r"\[([^]]*)\]\(([^)#:]*\.md)\)", " ".join(rows))
    folder = posixpath.dirname(page)
    return [{title[0].upper() + title[1:]: posixpath.normpath(posixpath.join(folder, path))} for title, path in found]


def on_config(config):
    start, stories, decisions = "docs/README.md", "docs/explanation/stories/README.md", "docs/decisions/README.md"
    nav = [{"Home": ["README.md", {"Tutorial": "docs/tutorial.md"}, {"Changes": "CHANGELOG.md"},
                     {"Security": "SECURITY.md"}, {"All pages": start}]}]
    for heading, text in sections((root / start).read_text(), 2):
        groups = [{group: entries(start, part)} for group, part in sections(text, 3)]
        found = groups or entries(start, text)
        for entry in found:
            if stories in entry.values():
                entry["Stories"] = [stories, *entries(stories)]
        if found:
            nav.append({heading: found})
    results = [path for path in pages() if path.startswith("benchmarks/")]
    numbered = [{f"{number} {title(path)}": path} for entry in entries(decisions) for number, path in entry.items()]
    nav += [{"Performance": ["docs/performance.md", *results]},
            {"Decisions": [decisions, *numbered]},
            {"Contributing": "CONTRIBUTING.md"}]
    config.nav = nav
    return config


def on_nav(nav, config, files):
    nav.items.append(Link("API", "api/index.html"))  # in the configuration, mkdocs would miss the page
    return nav


# ------------------------------------------------------------------------------------------- links to the API reference


@functools.cache
def names():
    """Returns the page of the API reference for each documented name, from `Linear` to `lockstep::nn::Linear`.

    Functions have their namespace in each name. A short name that several types have is left out.
    """
    found = {}

    def add(name, page, whole):
        parts = name.split("::")
        for first in range(len(parts) if whole else len(parts) - 1):
            found.setdefault("::".join(parts[first:]), set()).add(page)

    for compound in xml.etree.ElementTree.parse(root / "build/docs/api.tag").getroot():
        name, kind = compound.findtext("name"), compound.get("kind")
        if kind in ("class", "struct", "concept"):
            page = compound.findtext("filename")
            add(name, page if page.endswith(".html") else page + ".html", True)
        elif kind == "namespace":
            for member in compound.iter("member"):
                if member.get("kind") in ("function", "enumeration", "typedef", "variable"):
                    page = f"{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                    key = f"{name}::{member.findtext('name')}"
                    if key not in found:  # the first overload
                        add(key, page, False)
    return {name: next(iter(pages)) for name, pages in found.items() if len(pages) == 1}


def title(page):
    """Returns the first heading of a page, without its number and marks."""
    heading = (root / page).read_text().split("\n", 1)[0]
    return re.sub(r"^# (\d{4} )?|`", "", heading)


def on_page_content(content, page, config, files):
    """Links names of public types and functions to the API reference, where they are code of their own."""
    up = "../" * page.file.url.count("/")

    def replaced(match):
        target = match[1] and names().get(html.unescape(match[1]).removeprefix("ls::").removesuffix("()"))
        return f'<a href="{up}api/{target}">{match[0]}</a>' if target else match[0]

    return re.sub(r"<(?:a|h\d|pre)\b.*?</(?:a|h\d|pre)>|<code>([\w:()]+)</code>", replaced, content, flags=re.S)


# ------------------------------------------------------------------------------------------------------ search and check


@event_priority(-100)  # the search plugin has written its index
def on_post_build(config):
    site = pathlib.Path(config.site_dir)
    shutil.copytree(api, site / "api")
    index_file = site / "search/search_index.json"
    index = json.loads(index_file.read_text())
    entries = {target: name.removeprefix("lockstep::") for name, target in names().items() if name.startswith("lockstep::")}
    for target in list(entries):
        page = target.split("#")[0]
        if page != target:  # a function is a section of the page of its floor or room, whose first section names it
            group = page.removeprefix("group__").removesuffix(".html").replace("__", "/")
            entries |= {page: group, page + "#top": group}
    for target in sorted(entries, key=lambda t: (t.removesuffix("top"), t)):
        index["docs"].append({"location": f"api/{target}", "title": entries[target], "text": "API reference"})
    index_file.write_text(json.dumps(index))
    (site / "search/search_index.js").write_text(
        f"var __index = {json.dumps(index)};\nvar __search = {{index: Promise.resolve(__index)}};\n")
    for worker in site.glob("assets/javascripts/workers/search*.js"):
        with worker.open("a") as file:
            file.write((root / "docs/site/search_worker.js").read_text())
    check_links(site)


def check_links(site):
    """Warns of each link to a file or an anchor that the site lacks, and of what a page loads from the network.

    doxygen links to sections that it leaves out. It also lists concepts without a docstring, and writes no page for them.
    """
    attribute = re.compile(r"\s(href|src|id|name)=[\"']([^\"']*)[\"']")
    text = {page.relative_to(site).as_posix(): page.read_text() for page in site.rglob("*.html")}
    values = {page: attribute.findall(written) for page, written in text.items()}
    anchors = {page: {value for key, value in found if key in ("id", "name")} for page, found in values.items()}
    checked, wrong = 0, {}
    for page, found in values.items():
        for remote in re.findall(r"<(?:link|script|img|iframe)\b[^>]*(?:href|src)=[\"']((?:https?:)?//[^\"']*)", text[page]):
            log.warning("%s loads %s from the network", page, remote)
        for link in {html.unescape(value) for key, value in found if key in ("href", "src")}:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or page == "404.html":  # the server decides which address that page has
                continue
            path, anchor = urllib.parse.unquote(url.path), urllib.parse.unquote(url.fragment)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            checked += 1
            if not (site / target).exists():
                wrong.setdefault(f"links to {target}, which does not exist", page)
            elif anchor and not page.startswith("api/") and target in anchors and anchor not in anchors[target]:
                wrong.setdefault(f"links to {target}#{anchor}, and that page has no such anchor", page)
    for problem, page in wrong.items():  # once, if all pages have a link in their navigation
        log.warning("%s %s", page, problem)
    if checked < 10000:
        log.warning("only %d links were found to check", checked)
