// Events of the server in; the utterances of the page out: what was recognised, and what the user chose instead.

import {withToneMark} from "./pinyin.js";

export const SURE = 0.7, UNSURE = 0.4;  // confidence from which a syllable counts as such

/** One utterance.
 *
 * Attributes: `start`, `end` (seconds of the page's time), `syllables` ({pinyin, start, end, confidence}), `hanzi`,
 * `texts` (the text of each syllable where a word with Latin letters has several; else empty), `stable` (syllables that will probably stay), `final`, `alternatives` ({pinyin, hanzi, score}), `characters`
 * ({hanzi, alternatives}), `marks` (the punctuation after each syllable), `word_starts` (the syllables with which words
 * begin; none if not known), `phrase`; `recognised`: syllables, hanzi, characters and word_starts before any choice of
 * the user.
 */
export class Utterance {
  #characters = new Map();  // chosen by the user, by position

  /** From a partial or a final of the server; `offset` is the time at which its sound begins in the page. */
  constructor(key, event, offset) {
    const moved = ({start, end, ...rest}) => ({...rest, start: start + offset, end: end + offset});
    const nothing = {texts: [], alternatives: [], characters: [], marks: [], word_starts: [], phrase: null, stable: 0};
    Object.assign(this, nothing, moved(event));
    this.key = key;
    this.hanzi ??= "";
    this.syllables = event.syllables.map(moved);
    this.final = event.type === "final";
    this.recognised = {syllables: this.syllables, hanzi: this.hanzi, texts: this.texts, characters: this.characters, word_starts: this.word_starts};
  }

  /** What stands under the syllables: {hanzi, mark, recognised, syllables, chosen, inside, alternatives}, one for each;
   * `inside` a word. A word with Latin letters is a single cell, and so is a phrase that has not one character for each
   * syllable. */
  get cells() {
    const characters = textsOf(this), before = textsOf(this.recognised), whole = characters.length !== this.syllables.length;
    const cells = whole && this.hanzi ? [[this.hanzi, this.syllables, 0]] : this.syllables.map((syllable, i) => [characters[i] ?? "", [syllable], i]);
    if (!whole) {
      for (let i = cells.length - 1; i > 0; i--) {
        if (!cells[i][0]) cells[i - 1][1].push(...cells.splice(i, 1)[0][1]);
      }
    }
    const recognised = this.recognised.syllables;
    return cells.map(([hanzi, syllables, i], number) => {
      const alike = before.length === characters.length && hanzi === (before[i] ?? "") && syllables[0].pinyin === recognised[i]?.pinyin;
      const same = whole ? hanzi === this.recognised.hanzi : alike;
      const mark = this.marks.length === characters.length ? this.marks[i] : "";
      const inside = this.word_starts.length > 0 && !this.word_starts.includes(i);
      const chosen = this.#characters.has(number) || !same, alternatives = this.characters[i]?.alternatives ?? [];
      return {hanzi: this.#characters.get(number) ?? hanzi, mark, recognised: hanzi, syllables, chosen, inside, alternatives};
    });
  }

  /** The user prefers another character. */
  chooseCharacter(number, hanzi) {
    if (hanzi === this.cells[number].recognised) this.#characters.delete(number);
    else this.#characters.set(number, hanzi);
  }

  /** The user prefers another hypothesis. Where it has more or fewer syllables, these share the time evenly. */
  chooseHypothesis({pinyin, hanzi, texts = []}) {
    const {syllables, characters, word_starts} = this.recognised, {start} = syllables[0], {end} = syllables.at(-1);
    const same = pinyin.join(" ") === syllables.map(each => each.pinyin).join(" "), step = (end - start) / pinyin.length;
    const spread = i => ({start: start + i * step, end: start + (i + 1) * step});
    this.#characters.clear();
    this.hanzi = hanzi;
    this.texts = texts;
    const unchanged = same && hanzi === this.recognised.hanzi;
    this.characters = unchanged ? characters : [];
    this.word_starts = unchanged ? word_starts : [];
    this.syllables = same ? syllables : pinyin.map((name, i) => {
      const times = pinyin.length === syllables.length ? syllables[i] : spread(i);
      return {pinyin: name, start: times.start, end: times.end};
    });
  }

  /** The characters with punctuation, or the pinyin where there are none. */
  get text() {
    const cells = this.cells;
    if (cells.some(cell => cell.hanzi)) return cells.map(cell => cell.hanzi + cell.mark).join("");
    return cells.map(pinyinOf).join(" ");
  }

  /** Whether a list of phrases was given and this is none of them. */
  get refused() {
    return Boolean(this.phrase) && this.phrase.accepted === false;
  }
}

/** The text of each syllable; another number of characters for a phrase. */
function textsOf({texts, hanzi}) {
  return texts.length ? texts : [...hanzi];
}

/** The pinyin of a cell, with tone marks. */
export function pinyinOf(cell) {
  return cell.syllables.map(syllable => withToneMark(syllable.pinyin)).join(" ");
}

/** The lowest confidence of a cell's syllables; null if not known. */
export function confidenceOf(cell) {
  const known = cell.syllables.map(syllable => syllable.confidence).filter(value => value !== null && value !== undefined);
  return known.length ? Math.min(...known) : null;
}

/** `sure`, `unsure` or `doubtful`. */
export function certainty(confidence) {
  if (confidence === null || confidence === undefined || confidence >= SURE) return "sure";
  return confidence >= UNSURE ? "unsure" : "doubtful";
}
