"""The HTML page in a real headless Chromium: on a phone and a desk, light, dark and on paper.

Skipped where there is no Chromium, unless the environment variable ILAVERIFY_REQUIRE_BROWSER is 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.html.page import Beside, html_page
from tests.reports.html.html_browser import REQUIRED, Browser, browser, find_browser
from tests.reports.html.html_examples import campaign, certificate, comparison, obligation, proved, refuted, times
from tests.reports.outcome_examples import ALL, claim

PHONE, DESK = (390, 844), (1280, 800)
LONG = "a_name_without_any_place_to_break_" * 6


def installed() -> str:
    """The command of a browser; where there is none the test is skipped, or fails if one is required."""
    command = find_browser()
    if command is None:
        reason = "no Chromium is installed (chromium, chromium-browser or google-chrome must be on the path)"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{reason}, and {REQUIRED} is 1")
        pytest.skip(reason)
    return command


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(installed(), tmp_path_factory.mktemp("browser") / "profile") as running:
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything on it: all verdicts, long names, wide tables, hostile texts."""
    directory = tmp_path_factory.mktemp("page")
    words = claim(LONG, statement=LONG, size_domain=f"1 <= {LONG} <= 9")
    many = [obligation(f"{LONG} {i}", f"group {i % 3}") for i in range(40)]
    long = proved(LONG, claim=words, document=certificate(words, obligations=many), trust=LONG * 5, file=f"{LONG}.py")
    outcomes = [proved(), long, refuted(), refuted("wide", "PROVED", program="x" * 500), *ALL]
    wide = comparison(64, 256, ((40, 200), (41, 203)))
    wide = replace(wide, device=tuple(f"0x{0:016x}" for _ in wide.device), ir=tuple(f"{v:0>18}" for v in wide.ir))
    text = html_page(
        outcomes,
        Beside(comparisons={"false": comparison(), "wide": wide}, scaling=times(directory), source="From a test.",
        campaigns=[campaign(directory), replace(campaign(directory), name=LONG, property=LONG)],
        versions={"ilaverify": "0.1.0"}),
    )  # fmt: skip
    path = directory / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def show(chromium: Browser, page: Path, size: tuple[int, int], dark: bool = False, media: str = "") -> None:
    chromium.screen(*size, dark=dark, media=media, phone=size == PHONE)
    chromium.open(page.as_uri())
    chromium.value("document.documentElement.style.scrollBehavior = 'auto'")


def test_a_missing_browser_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(REQUIRED, "0")
    with pytest.raises(pytest.skip.Exception, match="no Chromium is installed"):
        installed()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match=f"and {REQUIRED} is 1"):
        installed()


SCREENS = [
    pytest.param(size, dark, id=f"{name}-{'dark' if dark else 'light'}")
    for name, size in (("phone", PHONE), ("desk", DESK))
    for dark in (False, True)
]

TOO_WIDE = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !e.closest('.scroll, pre, .skip, thead');
}).map(e => e.tagName + '.' + e.className).slice(0, 5)
"""


@pytest.mark.parametrize(("size", "dark"), SCREENS)
def test_nothing_is_wider_than_the_screen(chromium: Browser, page: Path, size: tuple[int, int], dark: bool) -> None:
    show(chromium, page, size, dark)
    for _ in range(2):
        width = chromium.value("[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]")
        assert width[0] <= size[0] and width[1] <= size[0] and width[2] == size[0]
        assert chromium.value(TOO_WIDE) == []
        chromium.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    boxes = chromium.value(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    )
    assert boxes > 0  # wide tables are there, and scroll inside their boxes


@pytest.mark.parametrize(("size", "dark"), SCREENS)
def test_it_loads_nothing_and_complains_of_nothing(
    chromium: Browser, page: Path, size: tuple[int, int], dark: bool
) -> None:
    show(chromium, page, size, dark)
    chromium.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert chromium.requested == [page.as_uri()]
    assert chromium.complaints == []
    assert (
        chromium.value("document.scripts.length + document.images.length + document.querySelectorAll('iframe').length")
        == 0
    )
    assert chromium.value("document.compatMode") == "CSS1Compat"


@pytest.mark.parametrize(("size", "dark"), SCREENS)
def test_the_first_differing_cell_is_seen(chromium: Browser, page: Path, size: tuple[int, int], dark: bool) -> None:
    show(chromium, page, size, dark)
    found = chromium.value("""
      [...document.querySelectorAll('#claim-false td.first')].map(cell => {
        cell.scrollIntoView({block: 'center'});
        const box = cell.getBoundingClientRect();
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        const other = cell.parentElement.querySelector('td:not(.first)');
        return {
          seen: cell.contains(top), inside: box.left >= 0 && box.right <= innerWidth, text: cell.innerText,
          differs: getComputedStyle(cell).backgroundColor != getComputedStyle(other).backgroundColor,
          outline: getComputedStyle(cell).outlineStyle,
        };
      })""")
    assert [cell.pop("text") for cell in found] == ["0x00", "0x80"]
    assert found == [{"seen": True, "inside": True, "differs": True, "outline": "solid"}] * 2


CONTRAST = """
(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length == 3) return c;
      if (c[3] !== 0) return null;  // half transparent: not to be judged here
    }
    return [255, 255, 255];
  };
  const faint = [], seen = {texts: 0};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest('title')) continue;
    const style = getComputedStyle(e), below = ground(e);
    const above = parse(e.closest('svg') ? style.fill : style.color);
    const [high, low] = [light(above), light(below)].sort((a, b) => b - a);
    seen.texts++;
    if (!((high + 0.05) / (low + 0.05) >= 4.5)) faint.push(walker.currentNode.data.trim().slice(0, 40));
  }
  return {faint, texts: seen.texts};
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_has_contrast(chromium: Browser, page: Path, dark: bool) -> None:
    show(chromium, page, DESK, dark)
    found = chromium.value(CONTRAST)
    assert found["faint"] == [] and found["texts"] > 500


def test_the_contrast_of_faint_text_is_found(chromium: Browser, page: Path) -> None:
    show(chromium, page, DESK)
    chromium.value("document.documentElement.style.setProperty('--soft', '#8a939d')")
    assert len(chromium.value(CONTRAST)["faint"]) > 20


def test_dark_mode_has_other_colours(chromium: Browser, page: Path) -> None:
    def colours() -> Any:
        return chromium.value("""
          ['html', 'article.claim', 'h1', '.badge', 'td.first', 'a', '.plot text', '.plot .bar'].map(name => {
            const style = getComputedStyle(document.querySelector(name));
            return style.color + style.backgroundColor + style.fill;
          })""")

    show(chromium, page, DESK)
    light = colours()
    show(chromium, page, DESK, dark=True)
    assert all(a != b for a, b in zip(light, colours(), strict=True))
    ground = chromium.value("getComputedStyle(document.documentElement).backgroundColor")
    assert max(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) < 64


def test_paper_shows_what_is_folded(chromium: Browser, page: Path) -> None:
    hidden = "[...document.querySelectorAll('details pre')].filter(e => !e.checkVisibility()).length"
    show(chromium, page, DESK)
    assert chromium.value(hidden) > 0
    show(chromium, page, DESK, media="print")
    assert chromium.value(hidden) == 0 and chromium.value("document.querySelectorAll('details[open] pre').length") == 0
    assert chromium.value("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_tables_keep_their_roles_on_a_phone(chromium: Browser, page: Path) -> None:
    show(chromium, page, PHONE)
    assert chromium.value("getComputedStyle(document.querySelector('.overview tr')).display") == "block"
    chromium.call("Accessibility.enable")
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    for role in ("main", "navigation", "banner", "contentinfo", "table", "rowheader", "article", "heading"):
        assert role in roles, role
    assert roles.count("banner") == roles.count("main") == 1


def test_a_page_that_loads_something_is_noticed(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "loads.html"
    path.write_text("<!DOCTYPE html><title>x</title><link rel=stylesheet href=other.css><p>x", encoding="utf-8")
    chromium.open(path.as_uri())
    assert chromium.requested == [path.as_uri(), (tmp_path / "other.css").as_uri()]
    assert chromium.complaints != []


def test_the_page_forbids_scripts_and_loading(chromium: Browser, page: Path, tmp_path: Path) -> None:
    """Even markup that got into the page would do nothing: its policy forbids it."""
    attack = '<script>document.title = "attacked"</script><img src="file:///nothing.png">'
    path = tmp_path / "attacked.html"
    path.write_text(page.read_text(encoding="utf-8").replace("<main", attack + "<main"), encoding="utf-8")
    chromium.open(path.as_uri())
    assert chromium.value("document.title") == "ilaverify: what is proved"
    assert len([text for text in chromium.complaints if "Content Security Policy" in text]) == 2
