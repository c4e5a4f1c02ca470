"""The page of `compat_suite report`: its text, and how it works in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compat_suite.features import running
from compat_suite.operators.results import Entry, Failure, Results
from compat_suite.outputs import Output, curves
from compat_suite.report.build import Kept, page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NAMES = {"torch": {"abs": "has", "jit": "no <compiler> here", "vmap": "lacks"}}

# What a reader does, and what stands on the page then.
ACTIONS = """
const act = (id, field, value) => {
  const found = document.querySelector(`#${id} .${field}`);
  found.value = value;
  found.dispatchEvent(new Event("input"));
};
const rows = (id) => [...document.querySelectorAll(`#${id} .entries tbody tr`)].map(
  (row) => (row.querySelector("summary") || row.querySelector("td")).textContent);
const texts = (query) =>
  [...document.querySelectorAll(query)].map((each) => each.textContent.trim());
const seen = { all: rows("operators"), modules: rows("modules") };
act("operators", "search", "SV"); seen.search = rows("operators");
act("operators", "search", "");
act("operators", "state", "failed"); seen.failed = rows("operators");
act("operators", "state", "reason"); seen.reason = rows("operators");
act("operators", "state", "");
act("operators", "namespace", "linalg"); seen.namespace = rows("operators");
act("operators", "namespace", "");
act("names", "search", "jit"); seen.names = texts("#names li");
seen.features = texts("#features summary");
act("features", "state", "lacking"); seen.lacking = texts("#features li > p");
act("features", "state", "failed"); seen.broken = texts("#features summary");
act("features", "state", "");
seen.samplers = texts("#samplers li");
seen.curves = [...document.querySelectorAll("#scripts .plots path")].map(
  (each) => [each.getAttribute("class"), each.getAttribute("d")]);
seen.numbers = texts("#scripts .numbers tbody tr:first-child td");
act("scripts", "search", "gpt"); seen.scripts = texts("#scripts h3");
document.querySelector("#scripts details").open = true;
seen.known = document.getElementById("known").textContent;
seen.links = [...document.querySelectorAll("#contents a")].map(
  (a) => Boolean(document.querySelector(a.getAttribute("href"))));
const root = document.documentElement;
seen.wide = root.scrollWidth <= window.innerWidth;
const head = document.querySelector("#operators .entries thead");
seen.head = getComputedStyle(head).display;
const color = () => getComputedStyle(document.body).backgroundColor;
const line = () => getComputedStyle(document.querySelector("path.ours")).stroke;
seen.colors = [color()];
const before = line();
document.getElementById("theme").click();
seen.colors.push(color());
seen.recolored = before !== line();
setTimeout(() => {
  seen.pair = texts("#scripts .pair pre");
  const made = document.createElement("pre");
  made.id = "seen";
  made.textContent = JSON.stringify(seen);
  document.body.append(made);
}, 0);
"""
LOSSES = "step 1 loss 2.5000\nstep 2 loss 1.5000\nstep 3 loss 1.2500\n"


@pytest.fixture(scope="module")
def text() -> str:
    good = Entry("add", "torch", {"forward": {"float32": 3}, "grad": {"float32": 3}})
    bad = Entry("linalg.svd", "linalg", {"forward": {"float32": 2}})
    bad.failures = [Failure("forward", "float32", "(a</script>)", "values", "1 for 2")]
    left = Entry("to_sparse", "torch", reason="no sparse tensors")
    versions = {"torch": "2.13.0", "jax": "0.10.2"}
    linear = Entry("nn.Linear", "linear", {"copies": {"float32": 1}})
    return page(
        Kept(
            {
                "operators": Results(versions, {"samples": 2}, [good, bad, left]),
                "modules": Results(versions, {}, [linear]),
            },
            NAMES,
            [
                running.Feature("hooks", ["a.test_b"], ["<others>: a reason"]),
                running.Feature("modes", ["a.test_c"]),
            ],
            running.Run(
                "2.13.0",
                {"a.test_b": {"x": "passed"}, "a.test_c": {"y": "failed"}},
                [running.Sampler("torch.rand", 3)],
            ),
            [
                ("gpt", LOSSES, Output("gpt", LOSSES.replace("1.25", "1.26"))),
                ("vae", "a <b>", Output("vae", "", "exit status 1")),
            ],
        )
    )


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
    add, svd, sparse = data["databases"]["operators"]["entries"]
    assert add["states"]["grad"] == "ok" and add["dtypes"] == {"float32": True}
    assert svd["failures"][0]["sample"] == "(a</script>)" and svd["more"] == 0
    assert sparse["reason"] == "no sparse tensors"
    assert [n["state"] for n in data["names"]] == ["has", "left out", "lacks"]
    assert data["names"][1]["reason"] == "no <compiler> here"
    assert data["databases"]["modules"]["kinds"] == ["copies"]
    assert data["features"][0]["tests"] == {"a.test_b::x": "passed"}
    (curve,) = data["scripts"][0]["curves"]
    assert curve["label"] == "loss" and curve["actual"] == [2.5, 1.5, 1.26]


def test_numbers_that_are_printed_again_and_again_are_curves() -> None:
    text = "".join(
        f"epoch {i}: train {2.0 / i:.3f} | test {3.0 / i:.3f}\n  {i} {0.5 * i}\n"
        for i in range(1, 4)
    )
    text += "tensor([1.0, 2.0])\nlr [0.5, 0.25]\nonce 1.5\n"
    found = curves(text, text.replace("3.000", "3.001"))
    assert [c.label for c in found] == ["train", "test", "value"]
    assert found[0].expected == found[0].actual == [2.0, 1.0, 0.667]
    assert found[1].actual == [3.001, 1.5, 1.0]
    assert curves("loss 1.5\nloss 1.5\nloss 1.5\n", "") == []


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
        "--virtual-time-budget=2000",
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
    assert "no <compiler> here" in seen["known"] and "<others>" in seen["known"]
    assert seen["modules"] == ["nn.Linear"]
    assert seen["features"] == ["hooks 1 / 1 tests", "modes 0 / 1 tests"]
    assert seen["lacking"] == ["Not supported: <others>: a reason"]
    assert seen["broken"] == ["modes 0 / 1 tests"]
    assert seen["samplers"] == ["torch.rand bit for bit, 3 cases"]
    assert [kind for kind, _ in seen["curves"]] == ["theirs", "ours"]
    assert all(path.count("L") == 2 and "NaN" not in path for _, path in seen["curves"])
    assert seen["numbers"] == ["2.5", "2.5"]
    assert seen["scripts"] == ["gpt agrees within its tolerance"]
    assert seen["pair"][0] == LOSSES.strip() and "1.26" in seen["pair"][1]
    assert all(seen["links"]) and len(seen["links"]) == 8 and seen["recolored"]
    assert seen["wide"], "the page is wider than the window"
    assert (seen["head"] == "none") == (width < 720)
    light, night = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    assert seen["colors"] == ([night, light] if dark else [light, night])
