// The table of utterances of each system: what is chosen, in which order, a page of it; one row may be opened.

const PAGE = 25;
const FIELDS = ["text", "errors", "kind", "attribution", "confusion", "speaker", "listed"];

/** What an utterance's places hold, to be chosen by; made when first asked for. */
function namesIn(one) {
  if (!one.names) {
    const places = placesOf(one);
    one.names = {
      kind: new Set(places.flatMap(place => [place.kind, place.difference])),
      attribution: new Set(places.map(place => place.attribution)),
      confusion: new Set(places.flatMap(place => place.tags)),
      pair: new Set(places.flatMap(place => [`${place.token} → ${place.output}`, `${place.said} → ${place.heard}`])),
    };
  }
  return one.names;
}

function matches(one, chosen) {
  if (chosen.errors && (chosen.errors === "wrong") !== Boolean(one.syllables_errors || one.hanzi_errors)) return false;
  if (chosen.speaker && one.speaker !== chosen.speaker) return false;
  if (chosen.listed && !report.listed.includes(one.id)) return false;
  for (const name of ["kind", "attribution", "confusion", "pair"])
    if (chosen[name] && !namesIn(one)[name].has(chosen[name])) return false;
  if (!chosen.text) return true;
  one.searched ??= [one.id, one.speaker, one.text, one.output, one.said, one.heard].join("\n").toLowerCase();
  return one.searched.includes(chosen.text);
}

/** Those to listen to first, in their order; then the most errors. */
function byWorst(one, other) {
  const place = each => { const at = report.listed.indexOf(each.id); return at < 0 ? Infinity : at; };
  if (report.listed.length && place(one) !== place(other)) return place(one) - place(other);
  return errorsOf(other) - errorsOf(one) || other.syllables_errors - one.syllables_errors || one.position - other.position;
}

function explorer(root) {
  const all = report.systems[Number(root.dataset.system)].rows.map(readUtterance);
  const table = root.querySelector(".utterances"), body = table.tBodies[0], form = root.querySelector(".toolbar");
  const found = root.querySelector(".found .count"), pairNote = root.querySelector(".found .pair");
  const [back, forward] = root.querySelectorAll(".pages button"), place = root.querySelector(".pages span");
  const heads = [...table.tHead.rows[0].cells];
  let shown = [], page = 0, compare = byWorst, pair = "", opened = null;

  const row = one => {
    const listed = report.listed.includes(one.id);
    const button = make("button", {type: "button", class: "open", "aria-expanded": "false"}, one.id || "(no id)",
      listed ? make("span", {class: "sound", title: "to listen to"}, " ♪") : "");
    const cells = heads.map(head => {
      const name = head.dataset.sort, aside = head.classList.contains("aside") ? " aside" : "";
      if (name === "id") return make("td", {role: "cell"}, button);
      if (name === "speaker") return make("td", {role: "cell", class: aside}, one.speaker);
      if (name === "seconds") return make("td", {role: "cell", class: `number${aside}`}, one.seconds.toFixed(1));
      if (!name) return make("td", {role: "cell", class: "lines"}, lineOf(one, "token"), errorsOf(one) || one.syllables_errors ? lineOf(one, "output") : "");
      const level = name.replace("_errors", "");
      return make("td", {role: "cell", class: `number${aside}`}, `${one[name]} / ${one[`${level}_tokens`]}`);
    });
    const element = make("tr", {role: "row", class: "row", "data-id": one.id}, ...cells);
    button.addEventListener("click", () => toggle(element, one));
    return element;
  };

  const toggle = (element, one) => {
    const button = element.querySelector(".open"), open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", open);
    if (open) {
      const visible = heads.filter(head => head.offsetParent !== null).length;
      element.after(make("tr", {role: "row", class: "detail-row"}, make("td", {role: "cell", class: "opened", colspan: visible}, detailOf(one))));
      opened = one.id;
      history.replaceState(null, "", `#utt-${encodeURIComponent(one.id)}`);
    } else {
      element.nextElementSibling.remove();
      if (opened === one.id) history.replaceState(null, "", location.pathname + location.search);
    }
  };

  const draw = () => {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const start = page * PAGE, part = shown.slice(start, start + PAGE);
    body.replaceChildren(...part.map(row));
    found.textContent = `${count(shown.length)} of ${count(all.length)} utterances`;
    place.textContent = shown.length ? `${count(start + 1)} – ${count(start + part.length)} of ${count(shown.length)}` : "none";
    back.disabled = page === 0;
    forward.disabled = page === last;
    pairNote.hidden = !pair;
    pairNote.replaceChildren(...(pair ? [`with ${pair}`, make("button", {type: "button", "aria-label": `no longer only with ${pair}`}, "×")] : []));
  };

  const update = () => {
    const data = new FormData(form), chosen = Object.fromEntries(FIELDS.map(name => [name, data.get(name) ?? ""]));
    chosen.text = chosen.text.trim().toLowerCase();
    chosen.pair = pair;
    shown = all.filter(one => matches(one, chosen)).sort(compare);
    page = 0;
    draw();
  };

  const reset = () => {
    for (const name of FIELDS)
      if (form.elements[name]) form.elements[name][name === "listed" ? "checked" : "value"] = name === "listed" ? false : "";
    pair = "";
  };

  for (const head of heads.filter(head => head.dataset.sort))
    sortButton(head, way => {
      const name = head.dataset.sort;
      compare = name === "id" || name === "speaker"
        ? (a, b) => way * byText(a[name], b[name]) || a.position - b.position
        : (a, b) => way * (a[name] - b[name]) || a.position - b.position;
      update();
    });
  form.addEventListener("input", update);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", event => { event.preventDefault(); reset(); update(); });
  pairNote.addEventListener("click", event => { if (event.target.closest("button")) { pair = ""; update(); } });
  root.querySelector(".pages").addEventListener("click", event => {
    const step = Number(event.target.dataset.step);
    if (!step) return;
    page += step;
    draw();
    table.scrollIntoView({block: "start"});
  });
  // Kinds, confusions, attributions and speakers anywhere on the page lead here.
  root.addEventListener("click", event => {
    const pick = event.target.closest(".pick");
    if (!pick) return;
    reset();
    if (pick.dataset.filter === "pair") pair = pick.dataset.value;
    else form.elements[pick.dataset.filter].value = pick.dataset.value;
    update();
    document.getElementById(`${root.id}-utterances`).scrollIntoView();
    form.elements.text.focus({preventScroll: true});
  });
  update();

  /** Open an utterance, wherever it is; whether there is one of this name. */
  return id => {
    const one = all.find(each => each.id === id);
    if (!one) return false;
    if (!shown.includes(one)) { reset(); update(); }
    page = Math.floor(shown.indexOf(one) / PAGE);
    draw();
    const element = [...body.rows].find(each => each.dataset.id === id);
    toggle(element, one);
    element.scrollIntoView({block: "start"});
    element.querySelector(".open").focus({preventScroll: true});
    return true;
  };
}

const openers = [...document.querySelectorAll(".system")].map(root => [root, explorer(root)]);

function followLink() {
  if (!location.hash.startsWith("#utt-")) return;
  const [, open] = openers.find(([root]) => !root.hidden);
  open(decodeURIComponent(location.hash.slice("#utt-".length)));
}
window.addEventListener("hashchange", followLink);
followLink();
