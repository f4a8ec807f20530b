// Runs in the audio thread: the microphone's samples in; blocks of them out. The last block may be shorter.

const BLOCK_SECONDS = 0.04;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Float32Array(Math.round(BLOCK_SECONDS * sampleRate));
    this.filled = 0;
    this.running = true;
    this.port.onmessage = () => {
      this.running = false;
      this.hand(this.block.slice(0, this.filled));
      this.port.postMessage(null);  // nothing comes after this
    };
  }

  process([channels]) {
    const samples = this.running ? channels[0] ?? [] : [];
    for (let from = 0; from < samples.length;) {
      const count = Math.min(samples.length - from, this.block.length - this.filled);
      this.block.set(samples.subarray(from, from + count), this.filled);
      this.filled += count;
      from += count;
      if (this.filled === this.block.length) this.hand(this.block.slice());
    }
    return this.running;
  }

  hand(samples) {
    this.filled = 0;
    if (samples.length) this.port.postMessage(samples, [samples.buffer]);
  }
}

registerProcessor("capture", Capture);
