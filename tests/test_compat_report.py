"""The page of `compat_suite report`: its text, and how it works in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compat_suite.operators.results import Entry, Failure, Results
from compat_suite.report.build import page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NAMES = {"torch": {"abs": "has", "jit": "no <compiler> here", "vmap": "lacks"}}

# What a reader does, and what stands on the page then.
ACTIONS = """
const act = (id, value) => {
  const field = document.getElementById(id);
  field.value = value;
  field.dispatchEvent(new Event("input"));
};
const rows = () => [...document.querySelectorAll("#operators tbody tr")].map(
  (row) => (row.querySelector("summary") || row.querySelector("td")).textContent);
const seen = { all: rows() };
act("search", "SV"); seen.search = rows();
act("search", ""); act("state", "failed"); seen.failed = rows();
act("state", "reason"); seen.reason = rows();
act("state", ""); act("namespace", "linalg"); seen.namespace = rows();
act("namespace", "");
act("name-search", "jit");
seen.names = [...document.querySelectorAll("#names li")].map((i) => i.textContent);
seen.known = document.getElementById("known").textContent;
const root = document.documentElement;
seen.wide = root.scrollWidth <= window.innerWidth;
const head = document.querySelector("#operators thead");
seen.head = getComputedStyle(head).display;
const color = () => getComputedStyle(document.body).backgroundColor;
seen.colors = [color()];
document.getElementById("theme").click();
seen.colors.push(color());
const made = document.createElement("pre");
made.id = "seen";
made.textContent = JSON.stringify(seen);
document.body.append(made);
"""


@pytest.fixture(scope="module")
def text() -> str:
    good = Entry("add", "torch", {"forward": {"float32": 3}, "grad": {"float32": 3}})
    bad = Entry("linalg.svd", "linalg", {"forward": {"float32": 2}})
    bad.failures = [Failure("forward", "float32", "(a</script>)", "values", "1 for 2")]
    left = Entry("to_sparse", "torch", reason="no sparse tensors")
    versions = {"torch": "2.13.0", "jax": "0.10.2"}
    return page(Results(versions, {"samples": 2}, [good, bad, left]), NAMES)


class _Reader(HTMLParser):
    """Collects the scripts and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.loaded: list[str] = []
        self._within = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [v or "" for k, v in attrs if k in ("src", "href")]
        self._within = tag == "script"
        if self._within:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = False

    def handle_data(self, data: str) -> None:
        if self._within:
            self.scripts[-1] += data


def test_the_page_is_complete_in_itself(text: str) -> None:
    reader = _Reader()
    reader.feed(text)
    assert len(reader.scripts) == 2 and not reader.loaded
    assert "{{" not in text and not re.search(r"https?://|@import|url\(", text)
    data = json.loads(reader.scripts[0])
    add, svd, sparse = data["operators"]
    assert add["states"]["grad"] == "ok" and add["dtypes"] == {"float32": True}
    assert svd["failures"][0]["sample"] == "(a</script>)" and svd["more"] == 0
    assert sparse["reason"] == "no sparse tensors"
    assert [n["state"] for n in data["names"]] == ["has", "left out", "lacks"]
    assert data["names"][1]["reason"] == "no <compiler> here"


@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: chromium")
@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("dark", [False, True])
def test_search_filters_and_themes(
    text: str, tmp_path: Path, width: int, dark: bool
) -> None:
    made = tmp_path / "report.html"
    made.write_text(text.replace("</body>", f"<script>{ACTIONS}</script></body>"))
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        "--dump-dom",
        made.as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', shown, re.S)
    assert found, shown[-2000:]
    seen = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">"))
    assert seen["all"] == ["add", "linalg.svd", "to_sparse"]
    assert seen["search"] == seen["failed"] == seen["namespace"] == ["linalg.svd"]
    assert seen["reason"] == ["to_sparse"]
    assert seen["names"] == ["torch.jit"]
    assert "no <compiler> here" in seen["known"]
    assert seen["wide"], "the page is wider than the window"
    assert (seen["head"] == "none") == (width < 720)
    light, night = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    assert seen["colors"] == ([night, light] if dark else [light, night])
