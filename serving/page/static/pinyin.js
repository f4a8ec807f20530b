// Canonical syllables in (zhong1, lv4); syllables as people write them out (zhōng, lǜ).

const MARKED = {a: "āáǎà", e: "ēéěè", i: "īíǐì", o: "ōóǒò", u: "ūúǔù", ü: "ǖǘǚǜ", n: "n̄ńňǹ", m: "m̄ḿm̌m̀"};

/** `hao3` → `hǎo`; text that is no syllable stays as it is. */
export function withToneMark(syllable) {
  const found = /^([a-zü]+)([1-5])$/.exec(syllable.replaceAll("v", "ü"));
  if (!found) return syllable;
  const [, letters, tone] = found;
  if (tone === "5") return letters;
  const at = markedLetter(letters);
  if (at < 0) return letters;
  const marks = [...MARKED[letters[at]].matchAll(/\p{L}\p{M}*/gu)].map(match => match[0]);
  return letters.slice(0, at) + marks[tone - 1] + letters.slice(at + 1);
}

/** The position of the tone mark: a or e, the o of ou, else the last vowel (or the nasal of a syllable without). */
function markedLetter(letters) {
  for (const vowel of ["a", "e", "ou"]) if (letters.includes(vowel)) return letters.indexOf(vowel);
  const vowels = [...letters.matchAll(/[iouü]/g)];
  return vowels.length ? vowels.at(-1).index : letters.search(/[nm]/);
}
