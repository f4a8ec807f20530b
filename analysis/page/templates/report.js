// Makes the static parts of the page interactive: tabs, sortable and filtered tables, heat maps.

/** Make an element with attributes and children; strings become text, never markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  element.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
  return element;
}

function count(number) {
  return number.toLocaleString("en");
}

function shareText(part, whole) {
  return whole ? (100 * part / whole).toFixed(1) + "\u202f%" : "";
}

const byText = new Intl.Collator("en", {numeric: true}).compare;

function connectTabs(list) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = chosen => tabs.forEach(tab => {
    tab.setAttribute("aria-selected", tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  });
  list.addEventListener("click", event => tabs.includes(event.target) && choose(event.target));
  list.addEventListener("keydown", event => {
    const to = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!to) return;
    const next = tabs[(tabs.indexOf(event.target) + to + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
}

/** Put a sort button into the head of a column. `onSort` is called with 1 (ascending) or -1. */
function sortButton(head, onSort) {
  const button = make("button", {type: "button", class: "sort"}, ...head.childNodes);
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of head.parentNode.children) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    onSort(order === "ascending" ? 1 : -1);
  });
}

function connectSorting(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent.trim() || head.querySelector(".hidden")) return;
    const numbers = head.classList.contains("number");
    const key = row => {
      const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
      return numbers ? Number(text.replaceAll(",", "")) : text;
    };
    sortButton(head, way => {
      const compare = numbers ? (a, b) => a - b : byText;
      body.append(...[...body.rows].sort((a, b) => way * compare(key(a), key(b))));
    });
  });
}

function connectFilter(input) {
  const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
  input.addEventListener("input", () => {
    const text = input.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !`${row.textContent} ${row.dataset.text}`.toLowerCase().includes(text);
  });
}

function connectHeatMap(table) {
  const readout = table.closest("figure").querySelector(".readout"), part = table.dataset.part;
  const heads = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const body = table.tBodies[0];
  const describe = cell => {
    const row = cell.parentNode, reference = row.cells[0].textContent, output = heads[cell.cellIndex];
    const number = Number(cell.dataset.count ?? (cell.textContent || 0)), total = Number(row.dataset.total);
    const share = total ? `, ${shareText(number, total)} of ${count(total)}` : "";
    if (reference === output) readout.textContent = `${part} ${reference}: correct ${count(number)} times${share}`;
    else if (reference === "–") readout.textContent = `${part} ${output}: inserted ${count(number)} times`;
    else if (output === "–") readout.textContent = `${part} ${reference}: deleted ${count(number)} times${share}`;
    else readout.textContent = `${part} ${reference} recognised as ${output}: ${count(number)} times${share}`;
  };
  const cellOf = event => event.target.closest("tbody td");
  body.addEventListener("pointerover", event => cellOf(event) && describe(cellOf(event)));
  body.addEventListener("focusin", event => cellOf(event) && describe(cellOf(event)));
  // The Tab key reaches one cell; from there the arrow keys move.
  let current = body.rows[0].cells[1];
  current.tabIndex = 0;
  body.addEventListener("keydown", event => {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    const cell = cellOf(event);
    if (!move || !cell) return;
    event.preventDefault();
    const row = body.rows[cell.parentNode.sectionRowIndex + move[0]], column = cell.cellIndex + move[1];
    if (!row || column < 1 || column >= row.cells.length) return;
    current.removeAttribute("tabindex");
    current = row.cells[column];
    current.tabIndex = 0;
    current.focus();
  });
}

function connectSegments(group) {
  const buttons = [...group.querySelectorAll("button")];
  group.addEventListener("click", event => {
    if (!buttons.includes(event.target)) return;
    for (const button of buttons) {
      button.setAttribute("aria-pressed", button === event.target);
      document.getElementById(button.dataset.shows).hidden = button !== event.target;
    }
  });
}

document.querySelectorAll("[role=tablist]").forEach(connectTabs);
document.querySelectorAll("table.sortable").forEach(connectSorting);
document.querySelectorAll("[data-filters]").forEach(connectFilter);
document.querySelectorAll("table.heat").forEach(connectHeatMap);
document.querySelectorAll(".segments").forEach(connectSegments);
