// Blocks of 16-bit samples, or parts of a file, in; the server's events (partial, final, …) out, over a WebSocket.

const MOST_UNSENT = 64 * 1024;  // bytes that may wait here; sound of a file waits in the file instead
const MOST_MISSED = 3;  // messages that the server has promised for a time; then the connection is lost

/** One stream of audio. `onEvent` gets each message of the server, and `{type: "closed", clean}` at the end. */
export class RecognitionStream {
  #socket;
  #ended = false;
  #waiting = [];  // until the connection is open
  #missed = 0;
  #watch;

  constructor(start, onEvent) {
    this.#socket = new WebSocket(new URL("v1/stream", document.baseURI.replace(/^http/, "ws")));
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onmessage = ({data}) => {
      const event = JSON.parse(data);
      this.#ended ||= event.type === "end" || event.type === "error";
      this.#missed = 0;
      if (event.type === "ready") this.#watch = setInterval(() => this.#expect(), 1000 * event.alive_seconds);
      onEvent(event);
      if (event.type === "end") this.#socket.close();
    };
    this.#socket.onclose = () => {
      clearInterval(this.#watch);
      onEvent({type: "closed", clean: this.#ended});
    };
    this.#waiting.push(JSON.stringify({type: "start", ...start}));
    this.#socket.onopen = () => this.#waiting.splice(0).forEach(message => this.#socket.send(message));
  }

  /** Send samples or bytes; after the end of the connection they are dropped. */
  send(data) {
    this.#post(data);
  }

  /** Resolves when the network has taken what was sent, but for a little. */
  async drained() {
    while (this.#socket.readyState === WebSocket.OPEN && this.#socket.bufferedAmount > MOST_UNSENT)
      await new Promise(done => setTimeout(done, 20));
  }

  /** No more sound follows: the server sends the last results and its `end`. */
  end() {
    this.#post('{"type":"end"}');
  }

  #post(message) {
    if (this.#socket.readyState === WebSocket.CONNECTING) this.#waiting.push(message);
    else if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(message);
  }

  // A network that is gone closes no connection: buffers take minutes of sound before the browser notices.
  #expect() {
    if (++this.#missed < MOST_MISSED) return;
    const closed = this.#socket.onclose;
    this.#socket.onclose = null;
    this.#socket.close();
    closed();
  }

  /** Give up. */
  abort() {
    this.#ended = true;
    this.#socket.close();
  }
}
