// A reference text and what was recognised in; error rates, the aligned texts and a link to the full report out.

import {make, percent} from "./elements.js";
import {withToneMark} from "./pinyin.js";
import {kindText, text} from "./texts.js";

/** Ask the server for the errors of a transcript.
 *
 * Resolves to its response; an error of the server rejects with its `{status, message, hint}`.
 */
export async function compare(texts) {
  const response = await fetch("v1/comparison", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(texts)});
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw {status: response.status, message: `HTTP ${response.status}`, ...content.error};
  return content;
}

/** Show a response in a section, with a form that opens the full report of the same texts in a new tab. */
export function showComparison(section, texts, {rates, alignment, level, kinds}) {
  const errors = alignment.filter(slot => slot.kind);
  const occurring = [...new Set(errors.map(slot => slot.kind))];
  section.replaceChildren(
    make("div", {class: "titled"}, make("h2", {id: "comparison-title", tabindex: "-1"}, text("errors"))),
    make("dl", {class: "rates"}, rates.map(rate => make("div", {},
      make("dt", {}, text(`rate_${rate.key}`)),
      make("dd", {}, make("b", {}, percent(rate.rate, 1)), make("span", {class: "note"}, text("ofTokens", rate.errors, rate.tokens)))))),
    make("p", {class: "note"}, text(errors.length ? "aboveBelow" : "noErrors")),
    make("ol", {class: "slots", lang: "zh-Hans"}, alignment.map(slot => slotOf(slot, level, kinds))),
    occurring.length ? make("dl", {class: "kinds"}, occurring.map(kind => make("div", {},
      make("dt", {}, make("span", {class: "sign", "aria-hidden": "true"}, kinds[kind].sign), kindText(kind, kinds[kind])[0],
        ` × ${errors.filter(slot => slot.kind === kind).length}`),
      make("dd", {class: "note"}, kindText(kind, kinds[kind])[1])))) : "",
    make("form", {method: "post", action: "v1/comparison/report", target: "_blank", rel: "noopener"},
      Object.entries(texts).map(([name, value]) => make("input", {type: "hidden", name, value})),
      make("button", {class: "button"}, text("report"))),
  );
  section.hidden = false;
  section.querySelector("h2").focus();
  section.scrollIntoView({block: "nearest"});
}

function slotOf({reference, hypothesis, kind, reference_syllable, hypothesis_syllable}, level, kinds) {
  const [above, below] = [sideOf(reference, reference_syllable, level), sideOf(hypothesis, hypothesis_syllable, level)];
  if (!kind) {
    // The right character, although another syllable was recognised.
    const recognised = hypothesis_syllable && hypothesis_syllable !== reference_syllable && withToneMark(hypothesis_syllable);
    return make("li", {class: recognised && "different"}, make("span", {class: "side"}, above), recognised && make("span", {class: "recognised", lang: "zh-Latn"}, recognised));
  }
  const label = text("slot", reference || text("nothing"), hypothesis || text("nothing"), kindText(kind, kinds[kind])[0]);
  return make("li", {class: "wrong"}, make("span", {class: "hidden", lang: document.documentElement.lang}, label),
    make("span", {"aria-hidden": "true", class: "side"}, above), make("span", {"aria-hidden": "true", class: "side output"}, below),
    make("span", {"aria-hidden": "true", class: "sign"}, kinds[kind].sign));
}

function sideOf(token, syllable, level) {
  if (!token) return "–";
  if (level === "syllables") return withToneMark(token);
  return syllable ? make("ruby", {}, token, make("rt", {lang: "zh-Latn"}, withToneMark(syllable))) : token;
}
