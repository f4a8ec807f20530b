// Utterances in; text, subtitles or JSON out, as a file of the browser's downloads.

// A subtitle ends at a pause; longer speech is cut as by transcribe.py --format srt (transcript_formats.py).
const CUE_PAUSE_SECONDS = 0.5, CUE_SYLLABLES = 24, CUE_LEAST = 8;

const FORMS = {
  txt: ["text/plain", asText],
  srt: ["application/x-subrip", asSubtitles],
  json: ["application/json", asJson],
};

/** One line an utterance; speech that is none of the given phrases in brackets. */
export function asText(utterances) {
  return utterances.map(each => `${each.refused ? `(${each.text})` : each.text}\n`).join("");
}

/** SubRip. */
export function asSubtitles(utterances) {
  const cues = utterances.flatMap(cuesOf);
  return cues.map(({start, end, text}, i) => `${i + 1}\n${srtTime(start)} --> ${srtTime(end)}\n${text}\n`).join("\n");
}

/** Everything: times in seconds, what was recognised, and what the user chose. */
export function asJson(utterances) {
  const segments = utterances.map(each => ({
    start: rounded(each.start),
    end: rounded(each.end),
    hanzi: each.cells.map(cell => cell.hanzi).join(""),
    text: each.text,
    pinyin: each.syllables.map(syllable => syllable.pinyin).join(" "),
    recognised: {hanzi: each.recognised.hanzi, pinyin: each.recognised.syllables.map(syllable => syllable.pinyin).join(" ")},
    syllables: each.syllables.map(syllable => ({...syllable, start: rounded(syllable.start), end: rounded(syllable.end)})),
    characters: each.characters,
    alternatives: each.alternatives,
    ...(each.phrase ? {phrase: each.phrase} : {}),
  }));
  return `${JSON.stringify({segments}, null, 1)}\n`;
}

/** Give the utterances to the user as a file: `txt`, `srt` or `json`. */
export function save(utterances, form) {
  const [type, write] = FORMS[form], now = new Date();
  const stamp = new Date(now - 60000 * now.getTimezoneOffset()).toISOString().slice(0, 16).replace("T", "-").replace(":", "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([write(utterances)], {type}));
  link.download = `transcript-${stamp}.${form}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function cuesOf(utterance) {
  const runs = [];
  for (const cell of words(utterance.cells)) {
    if (runs.length && gap(runs.at(-1).at(-1), cell) <= CUE_PAUSE_SECONDS) runs.at(-1).push(cell);
    else runs.push([cell]);
  }
  return runs.flatMap(shortEnough).map(run => ({
    start: run[0].syllables[0].start,
    end: run.at(-1).syllables.at(-1).end,
    text: asText([{refused: utterance.refused, text: run.map(cell => cell.hanzi).join("") || run.flatMap(cell => cell.syllables.map(each => each.pinyin)).join(" ")}]).trim(),
  }));
}

/** Cells of whole words, numbers and Latin words with their punctuation, in which no subtitle ends. */
function words(cells) {
  const whole = [];
  for (const {hanzi, mark, syllables, inside} of cells) {
    const before = whole.at(-1), text = hanzi && hanzi + mark;
    if (before && hanzi && (inside || /[A-Za-z0-9]\n[A-Za-z0-9]/.test(`${before.hanzi}\n${hanzi.trimStart()}`))) {
      whole[whole.length - 1] = {hanzi: before.hanzi + text, syllables: [...before.syllables, ...syllables]};
    } else {
      whole.push({hanzi: text, syllables});
    }
  }
  return whole;
}

/** Speech without pauses in parts: cut behind a punctuation mark, at its longest gap, or into equal parts. */
function shortEnough(run) {
  const before = [0];
  for (const cell of run) before.push(before.at(-1) + cell.syllables.length);
  const total = before.at(-1), parts = Math.ceil(total / CUE_SYLLABLES);
  const cuts = [...run.keys()].filter(i => Math.min(before[i], total - before[i]) >= CUE_LEAST);
  if (parts === 1 || !cuts.length) return [run];
  const silence = i => Math.floor(10 * gap(run[i - 1], run[i]) + 0.5);
  const distance = i => Math.abs(before[i] - total * Math.floor(parts / 2) / parts);
  const marked = i => Number(/[，。？！、]$/.test(run[i - 1].hanzi));
  const better = (i, best) => marked(i) - marked(best) || silence(i) - silence(best) || distance(best) - distance(i);
  const cut = cuts.reduce((best, i) => better(i, best) > 0 ? i : best);
  return [...shortEnough(run.slice(0, cut)), ...shortEnough(run.slice(cut))];
}

/** Seconds of silence between two cells. */
function gap(left, right) {
  return right.syllables[0].start - left.syllables.at(-1).end;
}

function srtTime(seconds) {
  const milliseconds = Math.round(seconds * 1000), two = value => String(Math.floor(value)).padStart(2, "0");
  return `${two(milliseconds / 3600000)}:${two(milliseconds / 60000 % 60)}:${two(milliseconds / 1000 % 60)},${String(milliseconds % 1000).padStart(3, "0")}`;
}

function rounded(seconds) {
  return Math.round(seconds * 1000) / 1000;
}
