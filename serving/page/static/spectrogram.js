// Samples and syllables in; a spectrogram that scrolls, with the syllables under it, out.

import {Bands} from "./fourier.js";

const PER_SECOND = 120;  // columns, and CSS pixels
const BANDS = 96;
const TILE = 1024;  // columns
const MOST_TILES = 220;  // half an hour; the oldest are forgotten
const LABELS = 44;  // CSS pixels under the picture, two rows
const FONT = '500 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/** Draws into `region`, which scrolls; `labels(from, to)` gives `{text, start, end, state}` between two seconds, in
 * the order of time. */
export class Spectrogram {
  #region; #strip; #canvas; #labels; #bands; #tiles = []; #columns = 0; #follows = true; #waiting = false; #marked = null;

  constructor(region, labels) {
    this.#region = region;
    this.#strip = region.firstElementChild;
    this.#canvas = region.querySelector("canvas");
    this.#labels = labels;
    region.addEventListener("scroll", () => {
      this.#follows = region.scrollLeft + region.clientWidth >= region.scrollWidth - 8;
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(region);
  }

  /** Seconds of sound so far. */
  get seconds() {
    return this.#columns / PER_SECOND;
  }

  /** A session of sound at this rate begins; the picture goes on where it is. */
  begin(rate) {
    this.#bands = new Bands(rate, PER_SECOND, BANDS);
    this.#follows = true;
  }

  feed(samples) {
    for (const column of this.#bands.feed(samples)) {
      const tile = this.#tiles[Math.floor(this.#columns / TILE)] ??= newTile();
      tile.levels.set(column, (this.#columns % TILE) * BANDS);
      this.#columns++;
    }
    delete this.#tiles[Math.floor(this.#columns / TILE) - MOST_TILES];
    this.draw();
  }

  clear() {
    this.#tiles = [];
    this.#columns = 0;
    this.#marked = null;
    this.draw();
  }

  /** Show and mark a stretch of time; null: none. */
  mark(start, end) {
    this.#marked = start === null ? null : {start, end};
    if (this.#marked) {
      const middle = (start + end) / 2 * PER_SECOND;
      this.#region.scrollLeft = middle - this.#region.clientWidth / 2;
    }
    this.draw();
  }

  /** The colours have changed. */
  repaint() {
    this.#tiles.forEach(tile => tile.painted = 0);
    this.draw();
  }

  /** Draw what is visible with the next frame of the screen. */
  draw() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.#strip.style.width = `max(100%, ${this.#columns}px)`;
      if (this.#follows) this.#region.scrollLeft = this.#region.scrollWidth;
      this.#paint();
    });
  }

  #paint() {
    const width = this.#region.clientWidth, height = this.#region.clientHeight, scale = devicePixelRatio;
    const canvas = this.#canvas, style = getComputedStyle(this.#region);
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;  // it stays in sight while the strip under it scrolls
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d"), colour = name => style.getPropertyValue(`--${name}`);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const picture = height - LABELS, left = Math.min(this.#region.scrollLeft, Math.max(0, this.#columns - 1));
    this.#tiles.forEach((tile, number) => {
      const x = number * TILE - left;
      if (x > width || x + TILE < 0) return;
      const columns = Math.min(TILE, this.#columns - number * TILE);
      paintTile(tile, columns, style);
      context.drawImage(tile.canvas, 0, 0, columns, BANDS, x, 0, columns, picture);
    });
    if (this.#marked) {
      context.fillStyle = context.strokeStyle = colour("mark");
      const x = this.#marked.start * PER_SECOND - left, wide = (this.#marked.end - this.#marked.start) * PER_SECOND;
      context.globalAlpha = 0.18;
      context.fillRect(x, 0, wide, picture);
      context.globalAlpha = 1;
      context.strokeRect(x + 0.5, 0.5, wide - 1, picture - 1);
    }
    this.#paintLabels(context, colour, left, width, picture);
  }

  #paintLabels(context, colour, left, width, top) {
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const ends = [-Infinity, -Infinity];  // of the last label in each row
    for (const {text, start, end, state} of this.#labels(left / PER_SECOND - 1, (left + width) / PER_SECOND + 1)) {
      const x = (start + end) / 2 * PER_SECOND - left;
      if (x < -60 || x > width + 60) continue;
      const half = context.measureText(text).width / 2 + 4, row = x - half < ends[0] && ends[1] < ends[0] ? 1 : 0;
      ends[row] = x + half;
      context.fillStyle = colour(state);
      context.fillText(text, x, top + 13 + 18 * row);
      context.fillRect(start * PER_SECOND - left + 1, top + 1, (end - start) * PER_SECOND - 2, 2);
    }
  }
}

function newTile() {
  const canvas = document.createElement("canvas");
  canvas.width = TILE;
  canvas.height = BANDS;
  return {canvas, levels: new Uint8Array(TILE * BANDS), painted: 0};
}

/** Colour the columns of a tile that have come since the last time. */
function paintTile(tile, columns, style) {
  if (tile.painted === columns) return;
  const context = tile.canvas.getContext("2d"), wide = columns - tile.painted;
  const palette = paletteOf(style), image = context.createImageData(wide, BANDS);
  for (let x = 0; x < wide; x++)
    for (let band = 0; band < BANDS; band++) {
      const level = tile.levels[(tile.painted + x) * BANDS + band], at = 4 * ((BANDS - 1 - band) * wide + x);
      image.data.set(palette.subarray(3 * level, 3 * level + 3), at);
      image.data[at + 3] = 255;
    }
  context.putImageData(image, tile.painted, 0);
  tile.painted = columns;
}

/** 256 colours between the stops `--level-0` … `--level-4`, written as `r g b`. */
function paletteOf(style) {
  const stops = [0, 1, 2, 3, 4].map(stop => style.getPropertyValue(`--level-${stop}`).trim().split(/\s+/).map(Number));
  return Uint8Array.from({length: 768}, (_, i) => {
    const at = Math.floor(i / 3) / 255 * 4, stop = Math.min(3, Math.floor(at));
    return stops[stop][i % 3] + (at - stop) * (stops[stop + 1][i % 3] - stops[stop][i % 3]);
  });
}
