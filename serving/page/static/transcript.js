// Utterances in; lines of characters with their pinyin above them out. What changes while one speaks is marked.

import {clock, make, percent} from "./elements.js";
import {certainty, confidenceOf, pinyinOf} from "./results.js";
import {text} from "./texts.js";

/** The lines of a transcript in `list`; `onOpen(utterance, cell number or null, element)` when one is tapped. */
export class Transcript {
  #list; #onOpen; #items = new Map();

  constructor(list, onOpen) {
    this.#list = list;
    this.#onOpen = onOpen;
  }

  /** Show an utterance, new or again. */
  show(utterance) {
    const before = this.#items.get(utterance.key), item = before ?? make("li");
    const last = this.#list.lastElementChild, follows = !last || last.getBoundingClientRect().top < innerHeight;
    if (!before) {
      this.#items.set(utterance.key, item);
      this.#list.append(item);
    }
    item.className = utterance.final ? "final" : "partial";
    utterance.final ? this.#showFinal(item, utterance) : showPartial(item, utterance);
    // Who reads further up is left there; who follows the speaker goes on seeing what is new.
    if (follows && item === this.#list.lastElementChild) item.scrollIntoView({block: "nearest"});
  }

  /** Take an utterance away: it had no speech after all. */
  remove(key) {
    this.#items.get(key)?.remove();
    this.#items.delete(key);
  }

  /** Focus a cell of a line that was drawn again, or what stands for its sentence (`number` null). */
  focus(key, number) {
    this.#items.get(key)?.querySelectorAll(number === null ? ".whole" : ".cell")[number ?? 0]?.focus();
  }

  clear() {
    this.#items.clear();
    this.#list.replaceChildren();
  }

  #showFinal(item, utterance) {
    const cells = utterance.cells.map((cell, number) => {
      const button = make("button", {...attributesOf(cell), tabindex: number ? -1 : 0}, ...contentOf(cell));
      button.addEventListener("click", () => this.#onOpen(utterance, number, button));
      return button;
    });
    const line = make("div", {class: "line", role: "toolbar", lang: "zh-Hans", "aria-label": utterance.text}, cells);
    line.addEventListener("keydown", event => moveFocus(event, cells));
    line.addEventListener("focusin", event => cells.forEach(cell => cell.tabIndex = cell === event.target ? 0 : -1));
    const whole = make("button", {type: "button", class: "whole", "aria-haspopup": "dialog", "aria-label": text("sentenceAt", clock(utterance.start))}, clock(utterance.start), make("span", {"aria-hidden": "true"}, "⋯"));
    whole.addEventListener("click", () => this.#onOpen(utterance, null, whole));
    const refused = utterance.refused ? make("p", {class: "refused"}, text("refused")) : null;
    item.replaceChildren(whole, make("div", {}, line, refused ?? ""));
  }
}

/** Draw an utterance that is being spoken; syllables that differ from the last time light up. */
function showPartial(item, utterance) {
  const before = [...item.querySelectorAll(".cell")].map(cell => cell.dataset.pinyin);
  const cells = utterance.cells.map((cell, number) => {
    const pinyin = pinyinOf(cell), changed = before.length > number ? before[number] !== pinyin : false;
    const state = number < utterance.stable ? "" : " open", kind = number >= before.length ? " new" : changed ? " revised" : "";
    return make("span", {class: `cell${state}${kind}`, "data-pinyin": pinyin}, ...contentOf(cell));
  });
  const line = make("div", {class: "line", lang: "zh-Hans"}, cells);
  item.replaceChildren(make("span", {class: "whole"}, clock(utterance.start)), line);
}

function contentOf(cell) {
  const pinyin = pinyinOf(cell);
  if (!cell.hanzi) return [make("span", {class: "alone", lang: "zh-Latn"}, pinyin)];
  return [make("ruby", {}, cell.hanzi, make("rt", {lang: "zh-Latn"}, pinyin)), cell.mark];
}

function attributesOf(cell) {
  const confidence = confidenceOf(cell), {chosen} = cell;
  const known = confidence === null ? "" : `, ${percent(confidence)}`;
  return {
    type: "button",
    class: `cell ${chosen ? "chosen" : certainty(confidence)}`,
    "aria-haspopup": "dialog",
    "aria-label": `${cell.hanzi} ${pinyinOf(cell)}${chosen ? `, ${text("chosen")}` : known}`.trim(),
  };
}

/** Arrow keys, Home and End move along the characters of a line. */
function moveFocus(event, cells) {
  const at = cells.indexOf(event.target);
  const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: cells.length - 1}[event.key];
  if (at < 0 || to === undefined || !cells[to]) return;
  event.preventDefault();
  cells[to].focus();
}
