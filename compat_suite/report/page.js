"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const element = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const TITLES = {
  forward: "forward", grad: "gradient", gradgrad: "second gradient",
  method: "method", "in-place": "in-place", "out=": "out=", errors: "errors",
};
const STATES = { ok: "agrees", failed: "differs", "": "–" };

const standing = (operator) =>
  operator.reason ? "reason" : operator.failures.length ? "failed" : "ok";

function showVersions() {
  const { torch, jax } = data.versions;
  const count = data.options.samples;
  byId("versions").textContent =
    `PyTorch ${torch} compared with torchshim on JAX ${jax}` +
    (count ? `, up to ${count} sample inputs of each kind and dtype` : "");
}

function showSummary() {
  const spaces = [...new Set(data.operators.map((o) => o.namespace))].sort();
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const title of ["", "entries", "left out", ...data.kinds.map((k) => TITLES[k])])
    head.append(element("th", title));
  const body = table.createTBody();
  for (const space of [...spaces, "all"]) {
    const all = data.operators.filter((o) => space === "all" || o.namespace === space);
    const judged = all.filter((o) => !o.reason);
    const row = body.insertRow();
    row.append(element("td", space), element("td", all.length));
    row.append(element("td", all.length - judged.length || ""));
    for (const kind of data.kinds) {
      const made = judged.filter((o) => o.states[kind]);
      const ok = made.filter((o) => o.states[kind] === "ok").length;
      const text = made.length ? `${ok} / ${made.length}` : "";
      row.append(element("td", text, ok === made.length ? "ok" : ""));
    }
  }
  byId("summary").append(table);
  for (const space of spaces) byId("namespace").append(element("option", space));
}

function operatorCell(operator) {
  const cell = element("td", undefined, "name");
  const notes = [];
  if (operator.reason) notes.push(element("p", operator.reason, "left"));
  for (const failure of operator.failures) {
    const note = element("div", undefined, "failure");
    note.append(element("strong", `${TITLES[failure.kind]} ${failure.dtype}: `));
    note.append(document.createTextNode(failure.cause), element("br"));
    note.append(element("code", `${failure.sample} ${failure.details}`));
    notes.push(note);
  }
  if (operator.more > 0) notes.push(element("p", `and ${operator.more} more`, "none"));
  if (!notes.length) {
    cell.textContent = operator.name;
    return cell;
  }
  const details = element("details");
  details.append(element("summary", operator.name), ...notes);
  cell.append(details);
  return cell;
}

function operatorRow(operator) {
  const row = element("tr");
  row.append(operatorCell(operator));
  for (const kind of data.kinds) {
    const state = operator.reason ? "" : operator.states[kind];
    const cell = element("td", STATES[state], state || "none");
    cell.dataset.label = TITLES[kind];
    row.append(cell);
  }
  const cell = element("td");
  cell.dataset.label = "dtypes";
  for (const [dtype, agrees] of Object.entries(operator.dtypes))
    cell.append(element("span", dtype, agrees ? "ok" : "failed"), " ");
  row.append(cell);
  return row;
}

function showOperators() {
  const wanted = byId("search").value.trim().toLowerCase();
  const space = byId("namespace").value;
  const state = byId("state").value;
  const found = data.operators.filter(
    (o) =>
      o.name.toLowerCase().includes(wanted) &&
      (!space || o.namespace === space) &&
      (!state || standing(o) === state),
  );
  byId("operators").tBodies[0].replaceChildren(...found.map(operatorRow));
  byId("count").textContent = `${found.length} of ${data.operators.length} entries`;
}

const LONGEST = 400;

function showNames() {
  const wanted = byId("name-search").value.trim().toLowerCase();
  const state = byId("name-state").value;
  const found = data.names.filter(
    (n) => n.name.toLowerCase().includes(wanted) && (!state || n.state === state),
  );
  const kinds = { has: "ok", lacks: "failed", "left out": "left" };
  const items = found.slice(0, LONGEST).map((each) => {
    const item = element("li", each.name, `name ${kinds[each.state]}`);
    item.title = each.reason || each.state;
    return item;
  });
  byId("names").replaceChildren(...items);
  const cut = found.length > LONGEST ? `, the first ${LONGEST} shown` : "";
  byId("name-count").textContent =
    `${found.length} of ${data.names.length} names${cut}`;
}

function showKnown() {
  const known = [
    ...data.operators.filter((o) => o.reason).map((o) => [o.name, o.reason]),
    ...data.names.filter((n) => n.reason).map((n) => [n.name, n.reason]),
  ];
  for (const [name, reason] of known)
    byId("known").append(element("dt", name), element("dd", reason));
}

function changeTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

for (const title of ["name", ...data.kinds.map((k) => TITLES[k]), "dtypes"])
  byId("columns").append(element("th", title));
for (const id of ["search", "namespace", "state"])
  byId(id).addEventListener("input", showOperators);
for (const id of ["name-search", "name-state"])
  byId(id).addEventListener("input", showNames);
byId("theme").addEventListener("click", changeTheme);
showVersions();
showSummary();
showOperators();
showNames();
showKnown();
