// Tables of the databases: operators, modules, optimizers.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const element = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const TITLES = { grad: "gradient", gradgrad: "second gradient" };
const STATES = { ok: "agrees", failed: "differs", "": "–" };
const title = (kind) => TITLES[kind] || kind;

const standing = (entry) =>
  entry.reason ? "reason" : entry.failures.length ? "failed" : "ok";

function labelled(text, field) {
  const label = element("label", `${text} `);
  label.append(field);
  return label;
}

function chooser(kind, options) {
  const made = element("select", undefined, kind);
  for (const [value, text] of options) {
    const option = element("option", text);
    option.value = value;
    made.append(option);
  }
  return made;
}

function summary({ entries, kinds }) {
  const spaces = [...new Set(entries.map((e) => e.namespace))].sort();
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const text of ["", "entries", "left out", ...kinds.map(title)])
    head.append(element("th", text));
  const body = table.createTBody();
  for (const space of [...spaces, "all"]) {
    const all = entries.filter((e) => space === "all" || e.namespace === space);
    const judged = all.filter((e) => !e.reason);
    const row = body.insertRow();
    row.append(element("td", space), element("td", all.length));
    row.append(element("td", all.length - judged.length || ""));
    for (const kind of kinds) {
      const made = judged.filter((e) => e.states[kind]);
      const ok = made.filter((e) => e.states[kind] === "ok").length;
      const text = made.length ? `${ok} / ${made.length}` : "";
      row.append(element("td", text, ok === made.length ? "ok" : ""));
    }
  }
  const made = element("div", undefined, "summary scroll");
  made.append(table);
  return [made, spaces];
}

function nameCell(entry) {
  const cell = element("td", undefined, "name");
  const notes = [];
  const reason = entry.reason || entry.known;
  if (reason) notes.push(element("p", reason, "left"));
  for (const failure of entry.failures) {
    const note = element("div", undefined, "failure");
    note.append(element("strong", `${title(failure.kind)} ${failure.dtype}: `));
    note.append(document.createTextNode(failure.cause), element("br"));
    note.append(element("code", `${failure.sample} ${failure.details}`));
    notes.push(note);
  }
  if (entry.more > 0) notes.push(element("p", `and ${entry.more} more`, "none"));
  if (!notes.length) {
    cell.textContent = entry.name;
    return cell;
  }
  const details = element("details");
  details.append(element("summary", entry.name), ...notes);
  cell.append(details);
  return cell;
}

function entryRow(entry, kinds) {
  const row = element("tr");
  row.append(nameCell(entry));
  for (const kind of kinds) {
    const state = entry.reason ? "" : entry.states[kind];
    const cell = element("td", STATES[state], state || "none");
    cell.dataset.label = title(kind);
    row.append(cell);
  }
  const cell = element("td");
  cell.dataset.label = "dtypes";
  for (const [dtype, agrees] of Object.entries(entry.dtypes))
    cell.append(element("span", dtype, agrees ? "ok" : "failed"), " ");
  row.append(cell);
  return row;
}

function showDatabase(section) {
  const found = data.databases[section.id];
  if (!found) {
    section.append(element("p", "No results are kept.", "none"));
    return;
  }
  const [sums, spaces] = summary(found);
  const { samples } = found.options;
  if (samples) {
    const text = `Up to ${samples} sample inputs of each kind and dtype.`;
    section.append(element("p", text, "none"));
  }
  const form = element("form", undefined, "filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  const search = element("input", undefined, "search");
  Object.assign(search, { type: "search", autocomplete: "off" });
  const space = chooser("namespace", [["", "all"], ...spaces.map((s) => [s, s])]);
  const state = chooser("state", [
    ["", "all"],
    ["ok", "everything agrees"],
    ["failed", "something differs"],
    ["reason", "left out"],
  ]);
  const count = element("output");
  form.append(labelled("Search", search), labelled("Namespace", space));
  form.append(labelled("State", state), count);
  const table = element("table", undefined, "entries");
  const head = table.createTHead().insertRow();
  for (const text of ["name", ...found.kinds.map(title), "dtypes"])
    head.append(element("th", text));
  const body = table.createTBody();
  const wrapped = element("div", undefined, "scroll");
  wrapped.append(table);
  section.append(sums, form, wrapped);

  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    const chosen = found.entries.filter(
      (e) =>
        e.name.toLowerCase().includes(wanted) &&
        (!space.value || e.namespace === space.value) &&
        (!state.value || standing(e) === state.value),
    );
    body.replaceChildren(...chosen.map((e) => entryRow(e, found.kinds)));
    count.textContent = `${chosen.length} of ${found.entries.length} entries`;
  };
  for (const field of [search, space, state]) field.addEventListener("input", show);
  show();
}
