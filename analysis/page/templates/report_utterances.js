// The table of utterances of each system: filters, order, pages, and the details of an opened row.

const PAGE = 25;
const FIELDS = ["text", "errors", "kind", "attribution", "confusion", "speaker", "listed"];

/** The names that the tokens of an utterance contain, for the filters; computed when first needed. */
function namesIn(utterance) {
  if (!utterance.names) {
    const tokens = tokensOf(utterance);
    utterance.names = {
      kind: new Set(tokens.flatMap(token => [token.kind, token.difference])),
      attribution: new Set(tokens.map(token => token.attribution)),
      confusion: new Set(tokens.flatMap(token => token.confusions)),
      pair: new Set(tokens.flatMap(token => [`${token.reference} → ${token.output}`, `${token.referenceSyllable} → ${token.syllable}`])),
    };
  }
  return utterance.names;
}

function matches(utterance, chosen) {
  if (chosen.errors && (chosen.errors === "wrong") !== Boolean(utterance.syllables_errors || utterance.hanzi_errors)) return false;
  if (chosen.speaker && utterance.speaker !== chosen.speaker) return false;
  if (chosen.listed && !report.listed.includes(utterance.position)) return false;
  for (const name of ["kind", "attribution", "confusion", "pair"])
    if (chosen[name] && !namesIn(utterance)[name].has(chosen[name])) return false;
  if (!chosen.text) return true;
  utterance.searched ??= [utterance.id, utterance.speaker, utterance.referenceHanzi, utterance.hanzi, utterance.referencePinyin, utterance.pinyin].join("\n").toLowerCase();
  return utterance.searched.includes(chosen.text);
}

/** Utterances with sound first, in their order; then by the number of errors. */
function byWorst(utterance, other) {
  const rank = each => { const at = report.listed.indexOf(each.position); return at < 0 ? Infinity : at; };
  if (report.listed.length && rank(utterance) !== rank(other)) return rank(utterance) - rank(other);
  return errorsOf(other) - errorsOf(utterance) || other.syllables_errors - utterance.syllables_errors || utterance.position - other.position;
}

function explorer(root) {
  const all = report.systems[Number(root.dataset.system)].rows.map(readUtterance);
  const table = root.querySelector(".utterances"), body = table.tBodies[0], form = root.querySelector(".toolbar");
  const found = root.querySelector(".found .count"), pairNote = root.querySelector(".found .pair");
  const [back, forward] = root.querySelectorAll(".pages button"), range = root.querySelector(".pages span");
  const heads = [...table.tHead.rows[0].cells];
  let shown = [], page = 0, compare = byWorst, pair = "", opened = null;

  const row = utterance => {
    const listed = report.listed.includes(utterance.position);
    const button = make("button", {type: "button", class: "open", "aria-expanded": "false"}, utterance.id || "(no id)",
      listed ? make("span", {class: "sound", title: "with sound"}, " ♪") : "");
    const cells = heads.map(head => {
      const name = head.dataset.sort, aside = head.classList.contains("aside") ? " aside" : "";
      if (name === "id") return make("td", {role: "cell"}, button);
      if (name === "speaker") return make("td", {role: "cell", class: aside}, utterance.speaker);
      if (name === "seconds") return make("td", {role: "cell", class: `number${aside}`}, utterance.seconds.toFixed(1));
      if (!name) return make("td", {role: "cell", class: "lines"}, lineOf(utterance, "reference"), errorsOf(utterance) || utterance.syllables_errors ? lineOf(utterance, "output") : "");
      const level = name.replace("_errors", "");
      return make("td", {role: "cell", class: `number${aside}`}, `${utterance[name]} / ${utterance[`${level}_tokens`]}`);
    });
    const element = make("tr", {role: "row", class: "row", "data-id": utterance.id}, ...cells);
    button.addEventListener("click", () => toggle(element, utterance));
    return element;
  };

  const toggle = (element, utterance) => {
    const button = element.querySelector(".open"), open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", open);
    if (open) {
      const visible = heads.filter(head => head.offsetParent !== null).length;
      element.after(make("tr", {role: "row", class: "detail-row"}, make("td", {role: "cell", class: "opened", colspan: visible}, detailOf(utterance))));
      opened = utterance.id;
      history.replaceState(null, "", `#utt-${encodeURIComponent(utterance.id)}`);
    } else {
      element.nextElementSibling.remove();
      if (opened === utterance.id) history.replaceState(null, "", location.pathname + location.search);
    }
  };

  const draw = () => {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const start = page * PAGE, part = shown.slice(start, start + PAGE);
    body.replaceChildren(...part.map(row));
    found.textContent = `${count(shown.length)} of ${count(all.length)} utterances`;
    range.textContent = shown.length ? `${count(start + 1)} – ${count(start + part.length)} of ${count(shown.length)}` : "none";
    back.disabled = page === 0;
    forward.disabled = page === last;
    pairNote.hidden = !pair;
    pairNote.replaceChildren(...(pair ? [`with ${pair}`, make("button", {type: "button", "aria-label": `remove the filter ${pair}`}, "×")] : []));
  };

  const update = () => {
    const data = new FormData(form), chosen = Object.fromEntries(FIELDS.map(name => [name, data.get(name) ?? ""]));
    chosen.text = chosen.text.trim().toLowerCase();
    chosen.pair = pair;
    shown = all.filter(utterance => matches(utterance, chosen)).sort(compare);
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
  // Buttons for kinds, confusions, attributions and speakers anywhere on the page set the filters.
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

  /** Open an utterance on whichever page it is; returns whether it exists. */
  return id => {
    const utterance = all.find(each => each.id === id);
    if (!utterance) return false;
    if (!shown.includes(utterance)) { reset(); update(); }
    page = Math.floor(shown.indexOf(utterance) / PAGE);
    draw();
    const element = body.rows[shown.indexOf(utterance) - page * PAGE];
    toggle(element, utterance);
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
