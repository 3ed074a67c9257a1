// SPDX-License-Identifier: Apache-2.0
// Server-sent events, as the HTML standard has them: bytes in, frames out. No I/O.

export interface Frame {
  /** Of this frame; undefined where it has none. */
  id: string | undefined;
  /** "message" where none is given. */
  event: string;
  data: string;
}

const FRAME_MAX = 16 << 20; // characters; far more than the server sends

/** Takes the bytes of a stream in pieces of any size, and gives each frame when its empty line has come. */
export class FrameParser {
  readonly #decoder = new TextDecoder(); // drops a byte order mark
  #rest = ""; // of a line whose end has not come
  #id: string | undefined;
  #event = "";
  #data: string[] = [];
  #length = 0;

  /** The frames that end in these bytes. */
  push(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    // A CR at the end may be half of a line's end.
    const held = text.endsWith("\r") ? "\r" : "";
    if (held) text = text.slice(0, -1);
    const lines = text.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + held;
    for (const line of lines) this.#line(line, frames);
    if (this.#rest.length + this.#length > FRAME_MAX) throw new Error("an event is larger than any of this server's");
    return frames;
  }

  #line(line: string, frames: Frame[]): void {
    if (line === "") {
      if (this.#data.length > 0)
        frames.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
      this.#id = undefined;
      this.#event = "";
      this.#data = [];
      this.#length = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment: it only shows that the stream lives
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") {
      this.#data.push(value);
      this.#length += value.length + 1;
    } else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
  }
}
