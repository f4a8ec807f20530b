// Rows of analysis/page/utterance_rows.py become utterances; an utterance becomes what one sees when it is opened.

const report = JSON.parse(document.getElementById("data").textContent);
const hasHanzi = report.levels.includes("hanzi");
let evidenceFound = null;

/** Sound and picture of an utterance; read only when first asked for, as they are large. */
function evidenceOf(id) {
  evidenceFound ??= JSON.parse(document.getElementById("evidence").textContent);
  return Object.hasOwn(evidenceFound, id) ? evidenceFound[id] : null;
}

function readUtterance(row, position) {
  const [id, speaker, seconds, snr, said, heard, text, output, gold] = row;
  return {
    id, speaker, seconds, snr, position,
    said, heard: heard ?? said, text, output: output ?? text, gold: gold ?? text,
    syllables_errors: row[9], syllables_tokens: row[10], hanzi_errors: row[11], hanzi_tokens: row[12],
    nBest: row[13], times: row[14], places: row[15],
  };
}

function errorsOf(one) {
  return hasHanzi ? one.hanzi_errors : one.syllables_errors;
}

/** The alignment; of an utterance without errors it is its text. */
function placesOf(one) {
  const named = number => number < 0 || number === undefined ? "" : report.words[number];
  if (one.places.length)
    return one.places.map(place => place.length < 3
      ? {token: place[0], output: place[0], kind: "", said: place[1] ?? "", heard: place[1] ?? "", difference: "",
         attribution: "", tags: []}
      : {token: place[0], output: place[1], kind: named(place[2]), said: place[3], heard: place[4],
         difference: named(place[5]), attribution: named(place[6]), tags: place.slice(7).map(named)});
  const syllables = one.said ? one.said.split(" ") : [];
  const tokens = hasHanzi ? [...one.text.replaceAll(" ", "")] : syllables;
  const same = tokens.length === syllables.length && hasHanzi;
  return tokens.map((token, number) => {
    const said = same ? syllables[number] : "";
    return {token, output: token, kind: "", said, heard: said, difference: "", attribution: "", tags: []};
  });
}

const MARKS = {a: "āáǎà", e: "ēéěè", i: "īíǐì", o: "ōóǒò", u: "ūúǔù", "ü": "ǖǘǚǜ"};

/** zhong1 → zhōng; what isn't a syllable stays as it is. */
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

/** Reference or output as one line, with what is wrong marked. */
function lineOf(one, side) {
  const line = make("div", {class: hasHanzi ? "line" : "line pinyin", lang: hasHanzi ? "zh-Hans" : "zh-Latn"});
  const latin = /[^\p{Script=Han}]$/u;
  let last = "";
  for (const place of placesOf(one)) {
    // What is missing is a dash in the output; the reference has no gap where something was inserted.
    const token = place[side] ? (hasHanzi ? place[side] : withMark(place[side])) : side === "output" && place.kind ? "–" : "";
    if (!token) continue;
    if (last && (!hasHanzi || (latin.test(last) && latin.test(token) && token !== "–"))) line.append(" ");
    line.append(place.kind ? make("mark", {}, token) : token);
    last = token;
  }
  if (!line.firstChild) line.append("–");
  return line;
}

function placeElement(place) {
  const wrong = place.kind || place.attribution;
  const why = [place.kind, place.difference].filter((name, number, all) => name && all.indexOf(name) === number);
  const side = (token, syllable, name) => hasHanzi
    ? make("div", {class: name}, make("b", {lang: "zh-Hans"}, token || "–"), make("small", {}, withMark(syllable)))
    : make("div", {class: name}, make("small", {}, withMark(token) || "–"));
  const item = make("li", {class: `place ${hasHanzi ? "" : "syllable "}${wrong ? "wrong" : "right"}${place.attribution ? ` by-${place.attribution}` : ""}`},
    side(place.token, place.said, "said"), side(place.output, place.heard, "heard"));
  if (!wrong) return item;
  const signs = why.map(name => make("i", {title: name, "aria-hidden": "true"}, report.signs[name]));
  const spoken = make("span", {class: "hidden"}, [...why, ...place.tags].join(", "));
  item.append(make("div", {class: "why"}, ...signs, spoken, place.attribution ? make("span", {}, place.attribution) : ""));
  item.title = [...why, ...place.tags, place.attribution].filter(Boolean).join(", ");
  return item;
}

function legendOf(places) {
  const names = new Set(places.flatMap(place => [place.kind, place.difference]).filter(Boolean));
  const tags = new Set(places.flatMap(place => place.tags));
  const legend = make("ul", {class: "legend"});
  for (const name of names)
    legend.append(make("li", {}, make("b", {class: "sign", "aria-hidden": "true"}, report.signs[name]), name));
  if (tags.size) legend.append(make("li", {}, `confusions: ${[...tags].join(", ")}`));
  return legend;
}

function besides(first, [start, end, middle]) {
  const characters = [...first];
  return characters.slice(0, start).join("") + middle + (end ? characters.slice(-end).join("") : "");
}

/** A text with the tokens marked that are in no longest common subsequence with the reference. */
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

function readingsTable(one) {
  const body = make("tbody");
  one.nBest.forEach(([pinyin, hanzi, score], number) => {
    const syllables = besides(one.heard, pinyin), text = besides(one.output, hanzi);
    const marked = comparedWith(one.said.split(" ").map(withMark), syllables.split(" ").map(withMark), " ");
    const cells = [make("td", {class: "number"}, String(number + 1)), make("td", {lang: "zh-Latn"}, ...marked)];
    if (hasHanzi) cells.push(make("td", {lang: "zh-Hans"}, ...comparedWith([...one.text], [...text], "")));
    body.append(make("tr", {}, ...cells, make("td", {class: "number"}, score.toFixed(2))));
  });
  const heads = ["", "syllables", ...(hasHanzi ? ["hanzi"] : []), "score"].map(text => make("th", {scope: "col"}, text));
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "readings"},
    make("table", {class: "readings"}, make("thead", {}, make("tr", {}, ...heads)), body));
}

/** Which of the recognised syllables are wrong, in their order. */
function wrongSyllables(places) {
  return places.filter(place => place.output).map(place => Boolean(hasHanzi ? place.said !== place.heard : place.kind));
}

/** Player, picture with a play head, syllables under it. */
function listening(one, evidence, places) {
  const figure = make("figure", {class: "listening"});
  const audio = evidence.sound ? make("audio", {controls: true, preload: "metadata", src: evidence.sound}) : null;
  const head = make("div", {class: "head"}), seconds = evidence.seconds || one.seconds || 1;
  const spoken = make("div", {class: "spoken"}), wrong = wrongSyllables(places);
  let until = null;
  const play = (from, to) => {
    if (!audio) return;
    audio.currentTime = from;
    until = to;
    audio.play();
  };
  const buttons = one.heard.split(" ").slice(0, one.times.length / 2).map((syllable, number) => {
    const [start, end] = [one.times[2 * number] / 1000, one.times[2 * number + 1] / 1000];
    const button = make("button", {
      type: "button", class: wrong[number] ? "wrong" : null, title: `${start.toFixed(2)} – ${end.toFixed(2)} s`,
      style: `left:${100 * start / seconds}%;width:${100 * (end - start) / seconds}%`,
    }, withMark(syllable));
    button.addEventListener("click", () => play(start, end));
    return button;
  });
  spoken.append(...buttons);
  // Not wider than the picture itself, whose names would be blown up.
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
      button.classList.toggle("now", !audio.paused && now >= one.times[2 * number] / 1000 && now < one.times[2 * number + 1] / 1000));
    if (x < strip.scrollLeft || x > strip.scrollLeft + strip.clientWidth - 40) strip.scrollLeft = x - 80;
    if (until !== null && now >= until) { audio.pause(); until = null; }
    if (!audio.paused && audio.isConnected) requestAnimationFrame(follow);
  };
  for (const event of ["play", "seeked", "pause", "ended"]) audio?.addEventListener(event, follow);
  figure.append(...[audio, evidence.picture || buttons.length ? strip : null].filter(Boolean));
  const tracks = evidence.tracks.map(([label, text]) => make("li", {}, make("b", {}, label), ` ${text}`));
  if (buttons.length && audio) tracks.push(make("li", {}, make("b", {}, "syllables"), " as recognised; choose one to hear it."));
  figure.append(make("figcaption", {}, make("ol", {class: "tracks"}, ...tracks)));
  return figure;
}

/** Everything about an utterance. */
function detailOf(one) {
  const places = placesOf(one), evidence = report.listed.includes(one.id) ? evidenceOf(one.id) : null;
  const about = [
    one.speaker && `speaker ${one.speaker}`, one.seconds && `${one.seconds.toFixed(1)} s`,
    one.snr !== null && `signal-to-noise ratio ${one.snr} dB`,
    ...report.levels.map(level => `${one[`${level}_errors`]} of ${one[`${level}_tokens`]} ${level} wrong`),
  ].filter(Boolean).map(text => make("span", {}, text));
  const link = make("a", {href: `#utt-${encodeURIComponent(one.id)}`}, "link to this one");
  const detail = make("div", {class: "detail"}, make("p", {class: "about"}, ...about, link));
  if (evidence) detail.append(listening(one, evidence, places));
  detail.append(make("h4", {}, "Said above, recognised below"), make("ul", {class: "places"}, ...places.map(placeElement)), legendOf(places));
  if (hasHanzi && one.gold) {
    const text = one.gold === one.text ? ["the right text"] : comparedWith([...one.text], [...one.gold], "");
    detail.append(make("h4", {}, "From the true syllables the second stage makes"),
      make("div", {class: one.gold === one.text ? "" : "line", lang: one.gold === one.text ? "en" : "zh-Hans"}, ...text));
  }
  if (one.nBest.length) detail.append(make("h4", {}, "Readings, best first; what differs from the reference is marked"), readingsTable(one));
  return detail;
}
