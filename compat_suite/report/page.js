// The other parts of the page, and what is on it as a whole.
const LONGEST = 400;

// A list that is filtered by a text and a state.
function filtered(id, all, unit, states, show) {
  const section = byId(id);
  const search = section.querySelector(".search");
  const state = section.querySelector(".state");
  const update = () => {
    const wanted = search.value.trim().toLowerCase();
    const found = all.filter(
      (each) =>
        each.name.toLowerCase().includes(wanted) &&
        (!state.value || states(each).includes(state.value)),
    );
    const cut = found.length > LONGEST ? `, the first ${LONGEST} shown` : "";
    const count = `${found.length} of ${all.length} ${unit}${cut}`;
    section.querySelector("output").textContent = count;
    section.querySelector(".list").replaceChildren(...found.slice(0, LONGEST).map(show));
  };
  for (const field of [search, state]) field.addEventListener("input", update);
  update();
}

const passing = (feature) => {
  const found = Object.values(feature.tests);
  const passed = found.filter((state) => state === "passed").length;
  return [passed, found.length, found.includes("failed")];
};

function featureItem(feature) {
  const [passed, all, failed] = passing(feature);
  const item = element("li", undefined, "feature");
  const details = element("details");
  const head = element("summary", `${feature.name} `);
  head.append(element("span", `${passed} / ${all} tests`, failed ? "failed" : "ok"));
  const tests = element("ul", undefined, "tests columns");
  for (const [name, state] of Object.entries(feature.tests))
    tests.append(element("li", name, `name ${state === "passed" ? "ok" : state}`));
  details.append(head, tests);
  item.append(details);
  for (const text of feature.lacking)
    item.append(element("p", `Not supported: ${text}`, "left"));
  return item;
}

function featureStates(feature) {
  const states = [passing(feature)[2] ? "failed" : "ok"];
  return feature.lacking.length ? [...states, "lacking"] : states;
}

function showSamplers() {
  const items = data.samplers.map(({ name, cases, exact }) => {
    const item = element("li", `${name} `, "name");
    const said = exact ? "bit for bit" : "within tolerance";
    item.append(element("span", `${said}, ${cases} cases`, exact ? "ok" : "left"));
    return item;
  });
  byId("samplers").querySelector(".list").classList.add("columns");
  byId("samplers").querySelector(".list").append(...items);
}

function nameItem(each) {
  const kinds = { has: "ok", lacks: "failed", "left out": "left" };
  const item = element("li", each.name, `name ${kinds[each.state]}`);
  item.title = each.reason || each.state;
  return item;
}

function showKnown() {
  const known = [];
  for (const { entries } of Object.values(data.databases))
    for (const { name, reason, known: differs } of entries)
      if (reason || differs) known.push([name, reason || differs]);
  for (const { name, lacking } of data.features)
    known.push(...lacking.map((text) => [name, text]));
  known.push(...data.names.filter((n) => n.reason).map((n) => [n.name, n.reason]));
  for (const [name, reason] of known)
    byId("known").lastElementChild.append(element("dt", name), element("dd", reason));
}

function showHeads() {
  const { torch, jax } = Object.values(data.databases)[0]?.versions || {};
  const said = `PyTorch ${torch} compared with torchshim on JAX ${jax}`;
  byId("versions").textContent = said;
  for (const section of document.querySelectorAll("main > section")) {
    const head = element("h2", section.dataset.title);
    head.id = `${section.id}-title`;
    section.setAttribute("aria-labelledby", head.id);
    section.prepend(head);
    const link = element("a", section.dataset.title);
    link.href = `#${section.id}`;
    byId("contents").append(link, " ");
  }
}

function changeTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

byId("theme").addEventListener("click", changeTheme);
showHeads();
for (const section of document.querySelectorAll(".database")) showDatabase(section);
filtered("features", data.features, "features", featureStates, featureItem);
filtered("scripts", data.scripts, "scripts", (each) => [each.state], script);
filtered("names", data.names, "names", (each) => [each.state], nameItem);
showSamplers();
showKnown();
