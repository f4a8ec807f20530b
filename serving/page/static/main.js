// The page: its controls in; a recording, its transcript and what one does with it out.

import {Alternatives} from "./alternatives.js";
import {compare, showComparison} from "./comparison.js";
import {clock} from "./elements.js";
import {certainty, confidenceOf, pinyinOf, Utterance} from "./results.js";
import {asText, save} from "./save.js";
import {asIntegers, blocksOf, openMicrophone, RATE, readFile, Recordings, SoundError} from "./sound.js";
import {Spectrogram} from "./spectrogram.js";
import {RecognitionStream} from "./stream.js";
import {hasText, preferredLanguage, setLanguage, text} from "./texts.js";
import {Transcript} from "./transcript.js";

const KEPT = ["words", "phrases", "language", "theme"];  // of one visit to the next, in this browser
const FILE_PART = 256 * 1024;  // bytes of a file in a message
const BLOCKS_AT_ONCE = 25;
const COPIED_SECONDS = 2;
const ANSWER_SECONDS = 5;  // after which the server counts as unreachable

const element = id => document.getElementById(id);
const utterances = new Map();  // by key, in the order of time
const recordings = new Recordings();
const spectrogram = new Spectrogram(element("spectrogram"), labels);
const alternatives = new Alternatives(element("popover"), {
  onPlay: (from, to) => recordings.play(from, to),
  onMark: (from, to) => spectrogram.mark(from, to),
  onChange: (utterance, number) => {
    show(utterance);
    transcript.focus(utterance.key, number);
  },
});
const transcript = new Transcript(element("utterances"), (...which) => alternatives.open(...which));
let session = null;  // {number, offset, stream, microphone, failed}
let sessions = 0;
let lastComparison = null;

// --- Recording ---

/** Begin a session: `source` gives it sound, once the session exists. */
async function begin(state, source) {
  hideProblem();
  const current = session = {number: sessions++, offset: spectrogram.seconds, stream: null, microphone: null, failed: false};
  setState(state);
  try {
    await source(current);
  } catch (error) {
    if (!(error instanceof SoundError)) throw error;
    if (session !== current) return;  // it was cancelled
    finish();
    showProblem(error.key === "unreachable" ? await whyUnreachable("unreachable") : error.key);
  }
}

function listen() {
  return begin("connecting", async current => {
    const waiting = [];
    const take = samples => current.stream.send(hear(samples));
    const early = samples => current.stream ? take(samples) : waiting.push(samples);
    const microphone = await openMicrophone(early, () => lose(current, "unplugged"));
    if (session !== current) return microphone.close();  // cancelled while the browser asked for permission
    current.microphone = microphone;
    open(current, current.microphone.rate);
    waiting.forEach(take);
  });
}

function openFile(file) {
  return begin("reading", async current => {
    const samples = await readFile(file);
    if (session !== current) return;  // it was cancelled
    open(current, RATE, "file");  // the server decodes it, as it does any other upload
    for (const [number, block] of [...blocksOf(samples)].entries()) {
      hear(block);
      if (number % BLOCKS_AT_ONCE === 0) await new Promise(done => setTimeout(done));  // the page stays responsive
      if (session !== current) return;
    }
    for (let from = 0; from < file.size; from += FILE_PART) {
      current.stream.send(await file.slice(from, from + FILE_PART).arrayBuffer());
      await current.stream.drained();
      if (session !== current) return;
    }
    current.stream.end();
    if (session === current) setState("finishing");
  });
}

function open(current, rate, encoding = "pcm_s16le") {
  element("picture").hidden = false;
  spectrogram.begin(rate);
  recordings.begin(current.offset, rate);
  const field = name => element(name).value.trim();
  current.stream = new RecognitionStream({encoding, rate, words: field("words"), phrases: field("phrases")}, event => receive(current, event));
}

/** Show and keep samples; returns them as 16-bit integers. */
function hear(samples) {
  const integers = asIntegers(samples);
  recordings.add(integers);
  spectrogram.feed(samples);
  element("clock").textContent = clock(spectrogram.seconds);
  let loudest = 0;
  for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample));
  element("record").style.setProperty("--level", Math.min(1, Math.sqrt(loudest)).toFixed(2));
  return integers;
}

/** Stop listening; what is on its way is still shown. A second call gives up. */
async function stop() {
  const current = session;
  if (document.body.dataset.state === "finishing" || !current.stream) return finish();
  setState("finishing");
  await current.microphone?.close();
  current.microphone = null;
  current.stream.end();
}

function receive(current, event) {
  if (event.type === "partial" || event.type === "final") take(current, event);
  else if (event.type === "ready" && session === current && current.microphone) setState("listening");
  else if (event.type === "error") fail(current, event.code, event.message, event.hint);
  else if (event.type === "end" && session === current) finish();
  else if (event.type === "closed" && session === current) event.clean ? finish() : disconnected(current);
}

function take(current, event) {
  const key = `${current.number}-${event.utterance}`;
  if (!event.syllables.length) {
    utterances.delete(key);
    transcript.remove(key);
  } else {
    const utterance = new Utterance(key, event, current.offset);
    utterances.set(key, utterance);
    show(utterance);
    if (utterance.final) element("spoken").textContent = utterance.text;
  }
  arrange();
}

function show(utterance) {
  transcript.show(utterance);
  spectrogram.draw();
}

/** The session is over, for whatever reason. */
function finish() {
  const {microphone, stream} = session;
  session = null;
  microphone?.close();
  stream?.abort();
  for (const [key, utterance] of utterances)
    if (!utterance.final) {  // the server will not come back to it
      utterances.delete(key);
      transcript.remove(key);
    }
  arrange();
  setState("idle");
}

function lose(current, key) {
  if (session !== current) return;
  stop();
  showProblem(key);
}

function fail(current, code, message, hint) {
  if (current.failed) return;
  current.failed = true;
  if (session === current) finish();
  showProblem(code, message, hint);
}

/** The connection ended without a word: find out whether the server is there. */
async function disconnected(current) {
  const before = document.body.dataset.state;
  finish();
  setState("disconnected");
  if (current.failed) return;
  showProblem(await whyUnreachable(before === "connecting" ? "refusedConnection" : "lost"));
}

/** Resolves to `unreachable`, to `token` if the server accepts this browser's token no more, else to `otherwise`. */
async function whyUnreachable(otherwise) {
  const signal = AbortSignal.timeout(1000 * ANSWER_SECONDS);
  const status = await fetch("v1/models", {signal}).then(response => response.status, () => 0);
  return !status ? "unreachable" : status === 401 ? "token" : otherwise;
}

// --- What the page shows ---

function* labels(from, to) {
  for (const utterance of utterances.values()) {
    if (utterance.end < from || utterance.start > to) continue;
    for (const cell of utterance.cells) {
      const state = utterance.final ? certainty(confidenceOf(cell)) : "open";
      yield {text: pinyinOf(cell), start: cell.syllables[0].start, end: cell.syllables.at(-1).end, state};
    }
  }
}

function arrange() {
  const any = utterances.size > 0, finals = finished().length > 0;
  element("empty").hidden = any;
  element("tools").hidden = element("legend").hidden = !finals;
}

function finished() {
  return [...utterances.values()].filter(utterance => utterance.final);
}

function setState(state) {
  document.body.dataset.state = state;
  element("status").textContent = text(state);
  const running = !["idle", "disconnected"].includes(state);
  // A button that is disabled loses the focus, and with it the place of those who use a keyboard.
  if (running && [element("choose"), element("clear")].includes(document.activeElement)) element("record").focus();
  element("record-label").textContent = text(running ? "stop" : "start");
  element("record").title = text(running ? "stop" : "start");
  element("choose").disabled = running;
  element("clear").disabled = running;
}

/** Say what went wrong: a text of the page if it has one of this name, else the server's. */
function showProblem(key, message, hint) {
  const [problem, advice] = hasText(`problem_${key}`) ? text(`problem_${key}`) : [message, hint];
  const box = element("problem");
  box.querySelector(".message").textContent = problem;
  box.querySelector(".hint").textContent = advice ?? "";
  box.hidden = false;
}

function hideProblem() {
  element("problem").hidden = true;
}

function write(language) {
  setLanguage(language);
  element("language").textContent = text("otherLanguage");
  element("language").lang = language === "zh" ? "en" : "zh-Hans";
  setState(document.body.dataset.state);
  hideProblem();
  utterances.forEach(show);
  if (lastComparison) showComparison(element("comparison"), ...lastComparison);
}

function colour(theme) {
  document.documentElement.dataset.theme = theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  element("theme").setAttribute("aria-pressed", String(dark));
  spectrogram.repaint();
}

// --- What one does with it ---

async function compareWithReference() {
  const reference = element("reference").value.trim(), found = finished();
  if (!found.length) return showProblem("nothingToSave");
  if (!reference) {
    showProblem("noReference");
    return element("reference").focus();
  }
  hideProblem();
  const pinyin = found.flatMap(each => each.recognised.syllables.map(syllable => syllable.pinyin)).join(" ");
  const texts = {reference, pinyin, hanzi: found.map(each => each.recognised.hanzi).join("")};
  try {
    lastComparison = [texts, await compare(texts)];
    showComparison(element("comparison"), ...lastComparison);
  } catch ({status, message, hint}) {
    if (status === 401) showProblem("token");
    else hint ? showProblem("", message, hint) : showProblem("comparison");
  }
}

function clear() {
  utterances.clear();
  transcript.clear();
  spectrogram.clear();
  recordings.clear();
  lastComparison = null;
  element("comparison").hidden = element("picture").hidden = true;
  element("clock").textContent = clock(0);
  arrange();
  element("record").focus();
}

async function copy() {
  try {
    await navigator.clipboard.writeText(asText(finished()));
  } catch {  // without HTTPS there is no clipboard; or it isn't allowed
    return showProblem("copy");
  }
  element("copy").textContent = text("copied");
  setTimeout(() => element("copy").textContent = text("copy"), 1000 * COPIED_SECONDS);
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage is full or not allowed: the page works without.
  }
}

function kept() {
  try {
    return Object.fromEntries(KEPT.map(name => [name, localStorage.getItem(name) ?? ""]));
  } catch {
    return Object.fromEntries(KEPT.map(name => [name, ""]));
  }
}

function connect() {
  const running = () => !["idle", "disconnected"].includes(document.body.dataset.state);
  const on = (id, event, action) => element(id).addEventListener(event, action);
  on("record", "click", () => running() ? stop() : listen());
  on("choose", "click", () => element("file").click());
  on("file", "change", ({target}) => {
    if (target.files.length && !running()) openFile(target.files[0]);  // it may have been open for long
    target.value = "";
  });
  on("dismiss", "click", () => {
    hideProblem();
    element("record").focus();
  });
  on("compare", "click", compareWithReference);
  on("clear", "click", clear);
  on("copy", "click", copy);
  for (const button of document.querySelectorAll("[data-export]"))
    button.addEventListener("click", () => finished().length ? save(finished(), button.dataset.export) : showProblem("nothingToSave"));
  on("language", "click", () => {
    const language = document.documentElement.lang === "en" ? "zh" : "en";
    keep("language", language);
    write(language);
  });
  on("theme", "click", ({currentTarget}) => {
    const theme = currentTarget.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    keep("theme", theme);
    colour(theme);
  });
  for (const name of ["words", "phrases"]) on(name, "input", ({target}) => keep(name, target.value));
  document.addEventListener("dragover", event => {
    event.preventDefault();
    document.body.classList.toggle("dropping", !running());
  });
  document.addEventListener("dragleave", event => event.relatedTarget ?? document.body.classList.remove("dropping"));
  document.addEventListener("drop", event => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (!running() && event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  });
  addEventListener("beforeunload", event => running() && event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colour(kept().theme));
}

const settings = kept();
element("words").value = settings.words;
element("phrases").value = settings.phrases;
if (matchMedia("(max-width: 60rem)").matches)
  for (const details of document.querySelectorAll(".settings details")) details.open = false;
connect();
colour(settings.theme);
write(settings.language || preferredLanguage());
document.body.classList.add("loaded");
