// Samples in; levels of frequency bands out, one column of a spectrogram each.

const SIZE = 512;  // samples of a window
const LOWEST = 60, HIGHEST = 8000;  // Hz
const RANGE = 62;  // dB from black to white
const FIRST_PEAK = -36, QUIETEST_PEAK = -60, FALL = 0.03;  // dB: the loudest level follows the sound down slowly

/** Columns of a signal, `perSecond` of them, each of `bands` bytes from low to high frequencies. */
export class Bands {
  #hop; #window; #edges; #samples = new Float32Array(0); #position = 0; #peak = FIRST_PEAK;

  constructor(rate, perSecond, bands) {
    this.#hop = rate / perSecond;  // need not be a whole number: columns keep the time
    this.#window = Float32Array.from({length: SIZE}, (_, i) => 0.5 - 0.5 * Math.cos(2 * Math.PI * i / SIZE));
    const mel = hertz => 1127 * Math.log1p(hertz / 700), hertz = mels => 700 * Math.expm1(mels / 1127);
    const low = mel(LOWEST), high = mel(Math.min(HIGHEST, rate / 2));
    this.#edges = Float32Array.from({length: bands + 1}, (_, i) => hertz(low + (high - low) * i / bands) * SIZE / rate);
  }

  /** The columns (Uint8Array) that these samples complete. */
  feed(samples) {
    const all = new Float32Array(this.#samples.length + samples.length);
    all.set(this.#samples);
    all.set(samples, this.#samples.length);
    const columns = [];
    for (; this.#position + SIZE <= all.length; this.#position += this.#hop)
      columns.push(this.#column(all, Math.floor(this.#position)));
    const used = Math.min(Math.floor(this.#position), all.length);
    this.#samples = all.slice(used);
    this.#position -= used;
    return columns;
  }

  #column(samples, from) {
    const real = this.#window.map((weight, i) => weight * samples[from + i]), imaginary = new Float32Array(SIZE);
    transform(real, imaginary);
    const power = bin => (real[bin] ** 2 + imaginary[bin] ** 2) * 16 / SIZE ** 2;
    const levels = Float32Array.from({length: this.#edges.length - 1}, (_, band) => {
      const start = this.#edges[band], end = this.#edges[band + 1];
      // Narrow bands lie between two bins; wide ones have the strongest of theirs.
      const bin = Math.floor(start), part = start - bin;
      let most = (1 - part) * power(bin) + part * power(bin + 1);
      for (let each = bin + 1; each < end; each++) most = Math.max(most, power(each));
      return 10 * Math.log10(most + 1e-12) + 4 * band / this.#edges.length;
    });
    this.#peak = Math.max(QUIETEST_PEAK, this.#peak - FALL, ...levels);
    return Uint8Array.from(levels, level => 255 * Math.min(1, Math.max(0, 1 + (level - this.#peak) / RANGE)));
  }
}

const COSINES = Float32Array.from({length: SIZE / 2}, (_, i) => Math.cos(2 * Math.PI * i / SIZE));
const SINES = Float32Array.from({length: SIZE / 2}, (_, i) => Math.sin(2 * Math.PI * i / SIZE));

/** The fast Fourier transform (Cooley and Tukey 1965) of `SIZE` complex numbers, in place. */
function transform(real, imaginary) {
  for (let i = 1, j = 0; i < SIZE; i++) {
    let bit = SIZE >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let half = 1; half < SIZE; half *= 2) {
    const step = SIZE / (2 * half);
    for (let start = 0; start < SIZE; start += 2 * half)
      for (let k = 0; k < half; k++) {
        const a = start + k, b = a + half, cosine = COSINES[k * step], sine = -SINES[k * step];
        const re = real[b] * cosine - imaginary[b] * sine, im = real[b] * sine + imaginary[b] * cosine;
        real[b] = real[a] - re;
        imaginary[b] = imaginary[a] - im;
        real[a] += re;
        imaginary[a] += im;
      }
  }
}
