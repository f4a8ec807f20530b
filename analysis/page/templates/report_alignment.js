// Reads the utterances of the page's data, and draws the details of an utterance.

const report = JSON.parse(document.getElementById("data").textContent);
const hasHanzi = report.levels.includes("hanzi");
let evidenceFound = null;

/** Sound and picture of an utterance. They are large, so they are parsed when first needed. */
function evidenceOf(utterance) {
  if (!report.listed.includes(utterance.position)) return null;
  evidenceFound ??= JSON.parse(document.getElementById("evidence").textContent);
  return evidenceFound[utterance.position];
}

function readUtterance(row, position) {
  return {
    ...row, position, referencePinyin: row.reference_pinyin, referenceHanzi: row.reference_hanzi, gold: row.gold_hanzi,
    syllables_errors: row.syllable_errors, syllables_tokens: row.syllable_tokens, nBest: row.n_best,
  };
}

function errorsOf(utterance) {
  return hasHanzi ? utterance.hanzi_errors : utterance.syllables_errors;
}

function readToken([reference, output, kind, referenceSyllable, syllable, difference, attribution, confusions]) {
  return {
    reference, output, kind, referenceSyllable, syllable, difference, attribution,
    confusions: confusions.split(",").filter(Boolean),
  };
}

function correctToken(token, syllable) {
  return {
    reference: token, output: token, kind: "", referenceSyllable: syllable, syllable, difference: "", attribution: "",
    confusions: [],
  };
}

/** The aligned tokens of an utterance; without errors, they are made from its text. */
function tokensOf(utterance) {
  if (utterance.alignment.length) return utterance.alignment.map(readToken);
  const syllables = utterance.referencePinyin ? utterance.referencePinyin.split(" ") : [];
  const tokens = hasHanzi ? [...utterance.referenceHanzi.replaceAll(" ", "")] : syllables;
  const withSyllables = tokens.length === syllables.length && hasHanzi;
  return tokens.map((token, number) => correctToken(token, withSyllables ? syllables[number] : ""));
}

const MARKS = {a: "āáǎà", e: "ēéěè", i: "īíǐì", o: "ōóǒò", u: "ūúǔù", "ü": "ǖǘǚǜ"};

/** zhong1 → zhōng; a text that is not a syllable is returned unchanged. */
function withMark(syllable) {
  const found = /^([a-zê]+)([1-5])$/.exec(syllable);
  if (!found) return syllable;
  const letters = found[1].replaceAll("v", "ü"), tone = Number(found[2]);
  const at = letters.includes("a") ? letters.indexOf("a") : letters.includes("e") ? letters.indexOf("e")
    : letters.includes("ou") ? letters.indexOf("o") : letters.search(/[iouü](?!.*[iouü])/);
  if (tone === 5 || at < 0) return letters;
  return letters.slice(0, at) + MARKS[letters[at]][tone - 1] + letters.slice(at + 1);
}

function withMarks(pinyin) {
  return pinyin.split(" ").map(withMark).join(" ");
}

/** Reference or output as one line with the errors marked. */
function lineOf(utterance, side) {
  const line = make("div", {class: hasHanzi ? "line" : "line pinyin", lang: hasHanzi ? "zh-Hans" : "zh-Latn"});
  const latin = /[^\p{Script=Han}]$/u;
  let last = "";
  for (const token of tokensOf(utterance)) {
    // A deletion is a dash in the output; an insertion leaves no gap in the reference.
    const written = token[side] ? (hasHanzi ? token[side] : withMark(token[side])) : side === "output" && token.kind ? "–" : "";
    if (!written) continue;
    if (last && (!hasHanzi || (latin.test(last) && latin.test(written) && written !== "–"))) line.append(" ");
    line.append(token.kind ? make("mark", {}, written) : written);
    last = written;
  }
  if (!line.firstChild) line.append("–");
  return line;
}

function tokenElement(token) {
  const wrong = token.kind || token.attribution;
  const why = [token.kind, token.difference].filter((name, number, all) => name && all.indexOf(name) === number);
  const side = (token, syllable, name) => hasHanzi
    ? make("div", {class: name}, make("b", {lang: "zh-Hans"}, token || "–"), make("small", {}, withMark(syllable)))
    : make("div", {class: name}, make("small", {}, withMark(token) || "–"));
  const item = make("li", {class: `place ${hasHanzi ? "" : "syllable "}${wrong ? "wrong" : "right"}${token.attribution ? ` by-${token.attribution}` : ""}`},
    side(token.reference, token.referenceSyllable, "reference"), side(token.output, token.syllable, "output"));
  if (!wrong) return item;
  const signs = why.map(name => make("i", {title: name, "aria-hidden": "true"}, report.signs[name]));
  const spoken = make("span", {class: "hidden"}, [...why, ...token.confusions].join(", "));
  item.append(make("div", {class: "why"}, ...signs, spoken, token.attribution ? make("span", {}, token.attribution) : ""));
  item.title = [...why, ...token.confusions, token.attribution].filter(Boolean).join(", ");
  return item;
}

function legendOf(tokens) {
  const names = new Set(tokens.flatMap(token => [token.kind, token.difference]).filter(Boolean));
  const confusions = new Set(tokens.flatMap(token => token.confusions));
  const legend = make("ul", {class: "legend"});
  for (const name of names)
    legend.append(make("li", {}, make("b", {class: "sign", "aria-hidden": "true"}, report.signs[name]), name));
  if (confusions.size) legend.append(make("li", {}, `confusions: ${[...confusions].join(", ")}`));
  return legend;
}

/** A text with the tokens marked that are not part of a longest common subsequence with the reference. */
function comparedWith(reference, tokens, glue) {
  const rows = reference.length, columns = tokens.length;
  const common = Array.from({length: rows + 1}, () => new Uint16Array(columns + 1));
  for (let i = rows - 1; i >= 0; i--)
    for (let j = columns - 1; j >= 0; j--)
      common[i][j] = reference[i] === tokens[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const pieces = [];
  for (let i = 0, j = 0; j < columns;) {
    if (i < rows && reference[i] === tokens[j]) { pieces.push(tokens[j++], glue); i++; }
    else if (i < rows && common[i + 1][j] >= common[i][j + 1]) i++;
    else pieces.push(make("mark", {}, tokens[j++]), glue);
  }
  return pieces;
}

function alternativesTable(utterance) {
  const body = make("tbody");
  utterance.nBest.forEach(([pinyin, hanzi, score], number) => {
    const marked = comparedWith(utterance.referencePinyin.split(" ").map(withMark), pinyin.split(" ").map(withMark), " ");
    const cells = [make("td", {class: "number"}, String(number + 1)), make("td", {lang: "zh-Latn"}, ...marked)];
    if (hasHanzi) cells.push(make("td", {lang: "zh-Hans"}, ...comparedWith([...utterance.referenceHanzi], [...hanzi], "")));
    body.append(make("tr", {}, ...cells, make("td", {class: "number"}, score.toFixed(2))));
  });
  const heads = ["", "syllables", ...(hasHanzi ? ["hanzi"] : []), "score"].map(text => make("th", {scope: "col"}, text));
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "alternatives"},
    make("table", {class: "readings"}, make("thead", {}, make("tr", {}, ...heads)), body));
}

/** Whether each recognised syllable is wrong. */
function wrongSyllables(tokens) {
  return tokens.filter(token => token.output).map(token => Boolean(hasHanzi ? token.referenceSyllable !== token.syllable : token.kind));
}

/** Audio player, picture with a play head, and the syllables below it. */
function player(utterance, evidence, tokens) {
  const figure = make("figure", {class: "listening"});
  const audio = evidence.sound ? make("audio", {controls: true, preload: "metadata", src: evidence.sound}) : null;
  const head = make("div", {class: "head"}), seconds = evidence.seconds || utterance.seconds || 1;
  const spoken = make("div", {class: "spoken"}), wrong = wrongSyllables(tokens);
  let until = null;
  const play = (from, to) => {
    if (!audio) return;
    audio.currentTime = from;
    until = to;
    audio.play();
  };
  const buttons = utterance.pinyin.split(" ").slice(0, utterance.times.length).map((syllable, number) => {
    const [start, end] = utterance.times[number];
    const button = make("button", {
      type: "button", class: wrong[number] ? "wrong" : null, title: `${start.toFixed(2)} – ${end.toFixed(2)} s`,
      style: `left:${100 * start / seconds}%;width:${100 * (end - start) / seconds}%`,
    }, withMark(syllable));
    button.addEventListener("click", () => play(start, end));
    return button;
  });
  spoken.append(...buttons);
  // At most as wide as the picture, so that its text is not enlarged.
  const timeline = make("div", {class: "timeline", style: `width:${Math.min(Math.max(seconds * 15, 18), 75)}rem`});
  if (evidence.picture) {
    const alt = evidence.tracks.map(([label, text]) => `${label}: ${text}`).join("; ");
    const picture = make("img", {src: evidence.picture, alt});
    picture.addEventListener("click", event => play(seconds * event.offsetX / picture.clientWidth, null));
    timeline.append(picture);
  }
  timeline.append(spoken, head);
  const strip = make("div", {class: "strip", tabindex: "0", role: "region", "aria-label": "picture over time"}, timeline);
  const follow = () => {
    const now = audio.currentTime, x = now / seconds * timeline.clientWidth;
    head.style.left = `${100 * now / seconds}%`;
    buttons.forEach((button, number) =>
      button.classList.toggle("now", !audio.paused && now >= utterance.times[number][0] && now < utterance.times[number][1]));
    if (x < strip.scrollLeft || x > strip.scrollLeft + strip.clientWidth - 40) strip.scrollLeft = x - 80;
    if (until !== null && now >= until) { audio.pause(); until = null; }
    if (!audio.paused && audio.isConnected) requestAnimationFrame(follow);
  };
  for (const event of ["play", "seeked", "pause", "ended"]) audio?.addEventListener(event, follow);
  figure.append(...[audio, evidence.picture || buttons.length ? strip : null].filter(Boolean));
  const tracks = evidence.tracks.map(([label, text]) => make("li", {}, make("b", {}, label), ` ${text}`));
  if (buttons.length && audio) tracks.push(make("li", {}, make("b", {}, "syllables"), " as recognised; choose utterance to play it."));
  figure.append(make("figcaption", {}, make("ol", {class: "tracks"}, ...tracks)));
  return figure;
}

/** All details of an utterance. */
function detailOf(utterance) {
  const tokens = tokensOf(utterance), evidence = evidenceOf(utterance);
  const about = [
    utterance.speaker && `speaker ${utterance.speaker}`, utterance.seconds && `${utterance.seconds.toFixed(1)} s`,
    utterance.snr !== null && `signal-to-noise ratio ${utterance.snr.toFixed(1)} dB`,
    ...report.levels.map(level => `${utterance[`${level}_errors`]} of ${utterance[`${level}_tokens`]} ${level} wrong`),
  ].filter(Boolean).map(text => make("span", {}, text));
  const link = make("a", {href: `#utt-${encodeURIComponent(utterance.id)}`}, "link to this utterance");
  const detail = make("div", {class: "detail"}, make("p", {class: "about"}, ...about, link));
  if (evidence) detail.append(player(utterance, evidence, tokens));
  detail.append(make("h4", {}, "Reference above, output below"), make("ul", {class: "places"}, ...tokens.map(tokenElement)), legendOf(tokens));
  if (hasHanzi && utterance.gold) {
    const text = utterance.gold === utterance.referenceHanzi ? ["the correct text"] : comparedWith([...utterance.referenceHanzi], [...utterance.gold], "");
    detail.append(make("h4", {}, "Output of the second stage for the reference syllables"),
      make("div", {class: utterance.gold === utterance.referenceHanzi ? "" : "line", lang: utterance.gold === utterance.referenceHanzi ? "en" : "zh-Hans"}, ...text));
  }
  if (utterance.nBest.length) detail.append(make("h4", {}, "Alternatives, best first; differences from the reference are marked"), alternativesTable(utterance));
  return detail;
}
