"""The page in Chromium: quiet, alone, every formula visible, on screens of all widths, in the dark and in print.

Needs the extra "browser" and Chromium on the PATH (apt-get install chromium).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import small

import freeattn as fa

playwright = pytest.importorskip("playwright.sync_api", reason='the extra "browser" is not installed')
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)
LATENT = small(latent=fa.Latent(24, shared=True), name="latent")  # a long derivation, with matrices
HIDDEN_FORMULAS = """[...document.querySelectorAll('math')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width < 2 || box.height < 2;
}).map(one => one.getAttribute('aria-label'))"""
SHOWN = "one => one.checkVisibility() && one.getBoundingClientRect().height > 100"

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not on the PATH"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the driver's pipes, when it stops
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    fa.html_report(small(), LATENT, names=["plain", "latent"], draws=1).save(path)
    return Path(path).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


class Tab:
    """A page that is open, with what it said and asked for."""

    def __init__(self, browser: Any, address: str, **settings: Any) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        if settings.get("java_script_enabled", True):
            self.page.wait_for_selector("html[data-figures=live]", timeout=60_000)

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)


@pytest.fixture
def tab(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    opened = Tab(browser, address, **getattr(request, "param", {}))
    yield opened
    opened.context.close()


def with_settings(**settings: Any) -> Any:
    return pytest.mark.parametrize("tab", [settings], indirect=True, ids=["-".join(settings)])


WIDE = {"viewport": {"width": 1280, "height": 900}}
NARROW = {"viewport": {"width": 375, "height": 800}}


@with_settings(**WIDE)
def test_it_is_quiet_and_alone(tab: Tab, address: str) -> None:
    assert tab.messages == []
    assert tab.requests == [address]


def test_it_lives_in_the_frame_of_a_notebook(browser: Any) -> None:
    context = browser.new_context(**WIDE)
    page = context.new_page()
    page.set_content(fa.html_report(small(), draws=0)._repr_html_())
    frame = page.frames[1]
    frame.wait_for_selector("html[data-figures=live]", timeout=60_000)
    assert frame.evaluate(HIDDEN_FORMULAS) == []
    context.close()


@with_settings(**WIDE)
def test_every_formula_is_seen(tab: Tab) -> None:
    tab.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert tab.ask("document.querySelectorAll('math').length") > 100
    assert tab.ask(HIDDEN_FORMULAS) == []
    assert tab.ask("document.querySelectorAll('merror').length") == 0


@pytest.mark.parametrize("tab", [WIDE, NARROW], indirect=True, ids=["wide", "narrow"])
def test_the_page_does_not_scroll_sideways(tab: Tab) -> None:
    tab.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
    outside = tab.ask(
        "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll, .formula, .skip, .plot') &&"
        " one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName)"
    )
    assert outside == []


@pytest.mark.parametrize("name", ["m" * 400, "中文 é $x$ \\ & </script><img src=x onerror=PWN=1>"])
def test_long_names_do_not_widen_the_page(browser: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.html"
    fa.html_report(small(), small(), names=[name, "b"], draws=1).save(path)
    tab = Tab(browser, path.as_uri(), **NARROW)
    assert tab.ask("document.documentElement.scrollWidth - innerWidth") <= 0
    assert tab.messages == []
    tab.context.close()


@with_settings(**WIDE)
def test_controls_change_the_figure(tab: Tab) -> None:
    def curves() -> int:
        return int(tab.ask("document.querySelectorAll('#figure-density .scatterlayer .trace').length"))

    both = curves()
    tab.page.uncheck("#figure-density input[name^=layer] >> nth=0")
    assert 0 < curves() < both
    tab.page.check("#figure-density input[name^=layer] >> nth=0")
    assert curves() == both
    tab.page.uncheck("#figure-density input[name^=bars]")
    assert curves() == both - 2
    kind = "document.querySelector('#figure-density .plot')._fullLayout.xaxis.type"
    before = tab.ask(kind)
    tab.page.check("#figure-density input[name^=view] >> nth=1")
    assert {before, tab.ask(kind)} == {"linear", "log"}
    assert tab.messages == []


def test_dark_mode_changes_the_colours_of_page_and_plots(browser: Any, address: str) -> None:
    found = []
    for scheme in ("light", "dark"):
        tab = Tab(browser, address, color_scheme=scheme)
        found.append([
            tab.ask("getComputedStyle(document.body).backgroundColor"),
            tab.ask("getComputedStyle(document.body).color"),
            tab.ask("document.querySelector('.plot')._fullLayout.font.color"),
            tab.ask("document.querySelector('.plot')._fullData[0].line.color"),
        ])
        if scheme == "light":  # and when it changes while the page is open
            tab.page.emulate_media(color_scheme="dark")
            for _ in range(100):
                if tab.ask("document.querySelector('.plot')._fullLayout.font.color") != found[0][2]:
                    break
                tab.page.wait_for_timeout(100)
            else:
                pytest.fail("the plots keep the colours of the light page")
        tab.context.close()
    assert all(light != dark for light, dark in zip(*found, strict=True))


@with_settings(**WIDE)
def test_print_shows_still_figures_and_the_whole_derivation(tab: Tab) -> None:
    stills, plots = "#figure-density .still >> nth=0", "#figure-density .plot"
    assert not tab.page.eval_on_selector(stills, SHOWN)
    assert tab.page.eval_on_selector(plots, SHOWN)
    tab.page.emulate_media(media="print", color_scheme="dark")
    assert tab.page.eval_on_selector(stills, SHOWN)
    assert not tab.page.eval_on_selector(plots, SHOWN)
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.ask(HIDDEN_FORMULAS) == []
    assert tab.page.pdf(format="A4").startswith(b"%PDF")


@with_settings(java_script_enabled=False)
def test_without_scripts_the_still_figures_are_seen(tab: Tab) -> None:
    assert tab.page.locator("#figure-density .still").first.is_visible()
    assert not tab.page.locator("#figure-density .plot").is_visible()
    assert not tab.page.locator("#figure-density .controls").is_visible()
    assert tab.page.locator("#figure-density table").count() > 0
