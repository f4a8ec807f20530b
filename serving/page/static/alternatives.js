// A character or a sentence in; a small window with its confidence, its sound and its alternatives out.

import {clock, make, percent} from "./elements.js";
import {certainty, confidenceOf, pinyinOf} from "./results.js";
import {withToneMark} from "./pinyin.js";
import {text} from "./texts.js";

const MARGIN = 8;  // CSS pixels from the window's edge

/** The window; `onPlay(from, to)` plays sound, `onChange(utterance, number)` follows a choice, `onMark(from, to)` a look. */
export class Alternatives {
  #popover; #onPlay; #onChange; #onMark;

  constructor(popover, {onPlay, onChange, onMark}) {
    this.#popover = popover;
    this.#onPlay = onPlay;
    this.#onChange = onChange;
    this.#onMark = onMark;
    popover.addEventListener("toggle", event => event.newState === "closed" && onMark(null));
    popover.addEventListener("focusout", ({relatedTarget}) => {
      if (relatedTarget && !popover.contains(relatedTarget)) popover.hidePopover();
    });
  }

  /** Open it at an element, for a cell of an utterance or for the whole of it (`number` null). */
  open(utterance, number, anchor) {
    const content = number === null ? this.#sentence(utterance) : this.#character(utterance, number);
    this.#popover.replaceChildren(...content);
    this.#popover.showPopover();
    this.#settle(anchor);
    (this.#popover.querySelector("[aria-pressed=true]") ?? this.#popover.querySelector("button")).focus();
  }

  #character(utterance, number) {
    const cell = utterance.cells[number], confidence = confidenceOf(cell);
    const {start} = cell.syllables[0], {end} = cell.syllables.at(-1);
    const shown = cell.hanzi || pinyinOf(cell);
    this.#onMark(start, end);
    const options = [...new Set([cell.recognised, cell.hanzi, ...cell.alternatives])].filter(Boolean);
    const choose = hanzi => {
      utterance.chooseCharacter(number, hanzi);
      this.#close(utterance, number);
    };
    return [
      make("div", {class: "big"},
        make("h3", {id: "popover-title", class: "character", lang: "zh-Hans"}, make("ruby", {}, shown, cell.hanzi ? make("rt", {lang: "zh-Latn"}, pinyinOf(cell)) : "")),
        make("div", {},
          confidence === null ? "" : make("p", {class: `confidence ${certainty(confidence)}`}, `${text("confidence")} ${percent(confidence)}`),
          make("p", {class: "note"}, text("from", cell.syllables.map(each => each.pinyin).join(" "), seconds(start), seconds(end)))),
        this.#listen(start, end)),
      ...options.length > 1 ? [list(text("alternatives"), options.map(hanzi => option(hanzi === cell.hanzi, () => choose(hanzi), hanzi)), "characters")]
        : [make("p", {class: "note"}, text("noAlternatives"))],
    ];
  }

  #sentence(utterance) {
    this.#onMark(utterance.start, utterance.end);
    const first = {hanzi: utterance.recognised.hanzi, texts: utterance.recognised.texts, pinyin: utterance.recognised.syllables.map(each => each.pinyin)};
    // Of hypotheses that differ in their pinyin only, the most probable one stands for all.
    const hypotheses = [first, ...utterance.alternatives].filter(({hanzi}, i, all) => !hanzi || all.findIndex(each => each.hanzi === hanzi) === i);
    const pinyin = utterance.syllables.map(each => each.pinyin).join(" ");
    const isShown = hypothesis => hypothesis.hanzi === utterance.hanzi && (hypothesis.hanzi || hypothesis.pinyin.join(" ") === pinyin);
    const choose = hypothesis => {
      utterance.chooseHypothesis(hypothesis);
      this.#close(utterance, null);
    };
    return [
      make("div", {class: "big"},
        make("h3", {id: "popover-title"}, text("sentenceAt", clock(utterance.start))),
        this.#listen(utterance.start, utterance.end)),
      list(text("hypotheses"), hypotheses.map(hypothesis => option(Boolean(isShown(hypothesis)), () => choose(hypothesis), hypothesis.hanzi,
        make("span", {class: "reading", lang: "zh-Latn"}, hypothesis.pinyin.map(withToneMark).join(" ")))), "sentences"),
    ];
  }

  #listen(start, end) {
    const button = make("button", {type: "button", class: "button"}, text("listen"));
    button.addEventListener("click", () => this.#onPlay(start, end));
    return button;
  }

  #close(utterance, number) {
    this.#popover.hidePopover();
    this.#onChange(utterance, number);
  }

  /** Under the element, above it where there is more room; on a phone the style sheet puts it at the bottom. */
  #settle(anchor) {
    const at = anchor.getBoundingClientRect(), size = this.#popover.getBoundingClientRect();
    const left = Math.min(Math.max(MARGIN, at.left + at.width / 2 - size.width / 2), innerWidth - size.width - MARGIN);
    const below = at.bottom + MARGIN, above = at.top - MARGIN - size.height;
    const fits = below + size.height <= innerHeight - MARGIN || above < MARGIN;
    this.#popover.style.setProperty("--left", `${left}px`);
    this.#popover.style.setProperty("--top", `${Math.max(MARGIN, Math.min(fits ? below : above, innerHeight - size.height - MARGIN))}px`);
  }
}

function list(title, options, kind) {
  return make("div", {class: `options ${kind}`, role: "group", "aria-label": title}, make("p", {class: "note", "aria-hidden": "true"}, title), options);
}

function option(pressed, onChoose, hanzi, ...more) {
  const button = make("button", {type: "button", class: "option", lang: "zh-Hans", "aria-pressed": String(pressed)}, make("span", {class: "hanzi"}, hanzi), ...more);
  button.addEventListener("click", onChoose);
  return button;
}

function seconds(value) {
  return value.toFixed(2);
}
