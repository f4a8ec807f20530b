// Utterances in; text, subtitles or JSON out, as a file of the browser's downloads.

// A subtitle ends at a pause, or when it would be longer than two lines (as transcribe.py --format srt).
const CUE_PAUSE_SECONDS = 0.5, CUE_SYLLABLES = 24;

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
  const cues = [];
  let run = [], syllables = 0;
  const end = () => run.length && cues.push({
    start: run[0].syllables[0].start,
    end: run.at(-1).syllables.at(-1).end,
    text: asText([{refused: utterance.refused, text: run.map(cell => cell.hanzi).join("") || run.flatMap(cell => cell.syllables.map(each => each.pinyin)).join(" ")}]).trim(),
  });
  for (const cell of utterance.cells) {
    const pause = run.length && cell.syllables[0].start - run.at(-1).syllables.at(-1).end > CUE_PAUSE_SECONDS;
    if (pause || syllables >= CUE_SYLLABLES) {
      end();
      run = [];
      syllables = 0;
    }
    run.push(cell);
    syllables += cell.syllables.length;
  }
  end();
  return cues;
}

function srtTime(seconds) {
  const milliseconds = Math.round(seconds * 1000), two = value => String(Math.floor(value)).padStart(2, "0");
  return `${two(milliseconds / 3600000)}:${two(milliseconds / 60000 % 60)}:${two(milliseconds / 1000 % 60)},${String(milliseconds % 1000).padStart(3, "0")}`;
}

function rounded(seconds) {
  return Math.round(seconds * 1000) / 1000;
}
