// The numbers that scripts print again and again, of both libraries, as curves.
const SVG = document.querySelector("svg").namespaceURI;
const WIDTH = 260, HEIGHT = 120, EDGE = 8;

function drawn(tag, attributes, kind) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    made.setAttribute(name, value);
  if (kind) made.setAttribute("class", kind);
  return made;
}

function path(series, low, high) {
  const across = (WIDTH - 2 * EDGE) / Math.max(1, series.length - 1);
  const up = (HEIGHT - 2 * EDGE) / (high - low || 1);
  const points = series.map(
    (value, i) => `${(EDGE + i * across).toFixed(1)} ` +
      `${(HEIGHT - EDGE - (value - low) * up).toFixed(1)}`,
  );
  return `M${points.join("L")}`;
}

const figure = (value) => String(Number(value.toPrecision(5)));

function curve({ label, expected, actual }) {
  const all = [...expected, ...actual].filter(Number.isFinite);
  const low = Math.min(...all), high = Math.max(...all);
  const made = element("figure");
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const text = `${label}: from ${figure(expected[0])} to ${figure(expected.at(-1))}`;
  svg.append(drawn("title", {}));
  svg.firstChild.textContent = text;
  svg.append(drawn("path", { d: path(expected, low, high) }, "theirs"));
  svg.append(drawn("path", { d: path(actual, low, high) }, "ours"));
  made.append(svg, element("figcaption", `${label} (${figure(low)} … ${figure(high)})`));
  return made;
}

// PyTorch's numbers beside torchshim's.
function numbers({ curves }) {
  const table = element("table", undefined, "numbers");
  const head = table.createTHead().insertRow();
  for (const { label } of curves)
    for (const library of ["PyTorch", "torchshim"])
      head.append(element("th", `${label}, ${library}`));
  const body = table.createTBody();
  const rows = Math.max(...curves.map((c) => c.expected.length));
  for (let i = 0; i < rows; i++) {
    const row = body.insertRow();
    for (const { expected, actual } of curves) {
      row.append(element("td", expected[i] ?? ""));
      row.append(element("td", actual[i] ?? ""));
    }
  }
  const made = element("div", undefined, "scroll");
  made.append(table);
  return made;
}

function script(each) {
  const made = element("article", undefined, "script");
  const head = element("h3", each.name, "name");
  const said = each.failure
    ? "differs" : each.same ? "the same text" : "agrees within its tolerance";
  head.append(" ", element("span", said, each.failure ? "failed" : "ok"));
  made.append(head);
  if (each.failure) made.append(element("pre", each.failure, "failed"));
  if (each.curves.length) {
    const plots = element("div", undefined, "plots");
    plots.append(...each.curves.map(curve));
    made.append(plots, numbers(each));
  }
  const details = element("details");
  details.append(element("summary", "All that is printed"));
  // Made when it is first looked at: these are long.
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const pair = element("div", undefined, "pair");
    for (const [library, text] of [
      ["PyTorch", each.expected], ["torchshim", each.actual],
    ]) {
      const side = element("div");
      side.append(element("h4", library), element("pre", text));
      pair.append(side);
    }
    details.append(pair);
  });
  made.append(details);
  return made;
}
