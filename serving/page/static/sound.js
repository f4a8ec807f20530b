// A microphone or an audio file in; mono samples in blocks out, as the server wants them (16 bit).

export const RATE = 16000;  // Hz, of the recogniser
export const LONGEST_FILE = 30 * 60;  // seconds; decoded sound is in memory, 4 MB a minute
const FILE_BLOCK_SECONDS = 0.2;
const MOST_KEPT = 60 * 60;  // seconds of a session that can be listened to again, 2 MB a minute
const LONGEST_FLUSH = 2000;  // milliseconds
const CAPTURE = new URL("capture.js", import.meta.url).href;

/** What keeps sound from coming; `key` names the explanation in texts.js. */
export class SoundError extends Error {
  constructor(key, cause) {
    super(key, {cause});
    this.key = key;
  }
}

/** A running microphone.
 *
 * `onSamples` gets Float32Array blocks in [-1, 1] at `rate`; `onEnded` is called if the device disappears.
 */
export async function openMicrophone(onSamples, onEnded) {
  if (!navigator.mediaDevices) throw new SoundError("insecure");
  // Everything is ready before the microphone opens, so that no sound is lost.
  let capture = await newCapture({sampleRate: RATE}), source;
  const stream = await openDevice().catch(error => {
    capture.context.close();
    throw error;
  });
  try {
    source = new MediaStreamAudioSourceNode(capture.context, {mediaStream: stream});
  } catch {  // some browsers can't resample a microphone: the server does it
    capture.context.close();
    capture = await newCapture({});
    source = new MediaStreamAudioSourceNode(capture.context, {mediaStream: stream});
  }
  const {context, port} = capture, flushed = Promise.withResolvers();
  port.onmessage = ({data}) => data ? onSamples(data) : flushed.resolve();
  source.connect(capture);
  stream.getAudioTracks()[0].addEventListener("ended", onEnded);
  await context.resume();
  return {
    rate: context.sampleRate,
    /** Stop; resolves when the last samples have been given to `onSamples`. */
    async close() {
      port.postMessage("stop");
      // A phone may have suspended the context, for a call: then nothing comes.
      await Promise.race([flushed.promise, new Promise(done => setTimeout(done, LONGEST_FLUSH))]);
      stream.getTracks().forEach(track => track.stop());
      await context.close();
    },
  };
}

async function newCapture(options) {
  const context = new AudioContext(options);
  try {
    await context.audioWorklet.addModule(CAPTURE);
  } catch (error) {
    context.close();
    throw new SoundError("unreachable", error);
  }
  return new AudioWorkletNode(context, "capture", {numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit"});
}

async function openDevice() {
  // The recogniser was trained on sound that no telephone software has processed.
  const audio = {channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false};
  try {
    return await navigator.mediaDevices.getUserMedia({audio});
  } catch (error) {
    const denied = ["NotAllowedError", "SecurityError"].includes(error.name);
    throw new SoundError(denied ? "denied" : error.name === "NotFoundError" ? "noMicrophone" : "busyMicrophone", error);
  }
}

/** The samples of a file in any format of this browser: Float32Array, mono, at `RATE`. */
export async function readFile(file) {
  const context = new AudioContext({sampleRate: RATE});
  try {
    const sound = await context.decodeAudioData(await file.arrayBuffer());
    if (sound.duration > LONGEST_FILE) throw new SoundError("longFile");
    const mono = new Float32Array(sound.length);
    for (let channel = 0; channel < sound.numberOfChannels; channel++) {
      const samples = sound.getChannelData(channel);
      for (let i = 0; i < mono.length; i++) mono[i] += samples[i] / sound.numberOfChannels;
    }
    return mono;
  } catch (error) {
    throw error instanceof SoundError ? error : new SoundError("unreadable", error);
  } finally {
    await context.close();
  }
}

/** The blocks of a file's samples, in order. */
export function* blocksOf(samples) {
  const size = FILE_BLOCK_SECONDS * RATE;
  for (let from = 0; from < samples.length; from += size) yield samples.slice(from, from + size);
}

/** Samples in [-1, 1] as 16-bit integers; those that came from 16 bits are the same again. */
export function asIntegers(samples) {
  return Int16Array.from(samples, value => Math.max(-32768, Math.min(32767, Math.round(32768 * value))));
}

/** The sound of a page: what was recorded, one session after the other, to be listened to again. */
export class Recordings {
  #sessions = [];

  /** Begin a session at a second of the page's time. */
  begin(start, rate) {
    this.#sessions.push({start, rate, blocks: [], length: 0, forgotten: 0});
  }

  add(integers) {
    const session = this.#sessions.at(-1);
    session.blocks.push(integers);
    session.length += integers.length;
    if (session.length > MOST_KEPT * session.rate) {
      const {length} = session.blocks.shift();
      session.length -= length;
      session.forgotten += length;
    }
  }

  clear() {
    this.#sessions = [];
  }

  /** Play the sound between two seconds of the page's time. */
  play(from, to) {
    const session = this.#sessions.findLast(each => each.start <= from);
    if (!session) return;
    const at = seconds => Math.max(0, Math.min(session.length, Math.round((seconds - session.start) * session.rate) - session.forgotten));
    const samples = new Float32Array(Math.max(1, at(to) - at(from)));
    let position = -at(from);
    for (const block of session.blocks) {
      const first = Math.max(0, -position), last = Math.min(block.length, samples.length - position);
      for (let i = first; i < last; i++) samples[position + i] = block[i] / 32768;
      position += block.length;
    }
    const context = new AudioContext({sampleRate: session.rate});
    const buffer = context.createBuffer(1, samples.length, session.rate);
    buffer.copyToChannel(samples, 0);
    const player = new AudioBufferSourceNode(context, {buffer});
    player.connect(context.destination);
    player.addEventListener("ended", () => context.close());
    player.start();
  }
}
