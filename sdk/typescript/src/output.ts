// SPDX-License-Identifier: Apache-2.0
// What a command prints, byte for byte, as it comes.
import type { IncomingMessage } from "node:http";
import type { Context } from "./context.js";
import { Patience, type CallOptions } from "./http.js";
import { pathOf } from "./paths.js";
import { hasEnded, type Command } from "./records.js";
import { now, sleep } from "./time.js";

export type StreamName = "standard" | "error";

/** A piece of what a command printed. */
export interface OutputChunk {
  stream: StreamName;
  /** Place of the first byte in all that the stream ever was. */
  offset: number;
  /** The bytes as they were printed. */
  bytes: Uint8Array;
  /** The same as text. A character that the bytes end within comes whole with the next piece; bytes that are no UTF-8 are U+FFFD. */
  text: string;
}

export interface OutputOptions extends CallOptions {
  /** Go on as it prints, until the command has ended. Else what is there now. */
  follow?: boolean | undefined;
  /** Which output: `standard` where it is absent; `both` gives the two in the order in which they come. */
  stream?: StreamName | "both" | undefined;
  /** Offset of the first byte; of both streams. */
  from?: number | undefined;
}

const BOTH: readonly StreamName[] = ["standard", "error"];
const SILENCE_MS = 90_000; // then the connection is made again, where it was
const EARLY_MS = 200;
const HURRY_MS = 2_000;

/** One stream of a command. Where the connection breaks it goes on at the byte where it was. */
class Reader {
  readonly #context: Context;
  readonly #command: readonly string[];
  readonly #stream: StreamName;
  readonly #signal: AbortSignal | undefined;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #at: number;
  #follow: boolean;
  #answer: IncomingMessage | undefined;
  #moved = now();

  constructor(
    context: Context,
    runId: string,
    commandId: string,
    stream: StreamName,
    options: Omit<OutputOptions, "stream">,
  ) {
    this.#context = context;
    this.#command = ["capsule-runs", runId, "commands", commandId];
    this.#stream = stream;
    this.#signal = options.signal;
    this.#at = options.from ?? 0;
    this.#follow = options.follow === true;
  }

  /** The command has ended: a connection on which nothing comes for so long is dead without having said so. */
  hurry(ms: number): void {
    if (now() - this.#moved < ms) return;
    this.#follow = false;
    this.#answer?.destroy(Object.assign(new Error("silent"), { code: "ECONNRESET" }));
  }

  async *chunks(): AsyncGenerator<OutputChunk, void, undefined> {
    const { http } = this.#context;
    const patience = new Patience();
    await http.hello(this.#signal);
    for (let ended = !this.#follow; ;) {
      const asked = now();
      const before = this.#at;
      try {
        yield* this.#once();
      } catch (failure) {
        const error = http.broken(failure, this.#signal);
        if (!http.isAway(error)) throw error;
        if (this.#at !== before) patience.reset();
        await patience.pause(error, asked, "the command may print more", this.#signal);
        continue;
      }
      patience.reset();
      if (ended) break;
      // The end of a body proves nothing: the command's record does.
      ended = hasEnded(await http.call<Command>({ method: "GET", path: pathOf(this.#command), signal: this.#signal }));
      if (!ended && now() - asked < EARLY_MS) await sleep(500, this.#signal);
    }
    yield* this.#rest();
  }

  /** What of a character there was, where no more comes of it. */
  *#rest(): Generator<OutputChunk> {
    const text = this.#decoder.decode();
    if (text !== "") yield { stream: this.#stream, offset: this.#at, bytes: new Uint8Array(), text };
  }

  async *#once(): AsyncGenerator<OutputChunk, void, undefined> {
    const query = { stream: this.#stream, from: this.#at, follow: this.#follow ? true : undefined };
    const path = pathOf([...this.#command, "output"], query);
    const answer = await this.#context.http.open({
      method: "GET",
      path,
      pool: "stream",
      silenceMs: SILENCE_MS,
      signal: this.#signal,
    });
    this.#answer = answer;
    try {
      const offset = Number(answer.headers["x-maitento-offset"] ?? this.#at);
      if (offset !== this.#at) {
        yield* this.#rest(); // what is between is gone
        this.#at = offset;
      }
      // Leaving the loop ends the connection.
      for await (const bytes of answer as AsyncIterable<Buffer>) {
        const offset = this.#at;
        this.#at += bytes.byteLength;
        this.#moved = now();
        yield { stream: this.#stream, offset, bytes, text: this.#decoder.decode(bytes, { stream: true }) };
      }
    } finally {
      this.#answer = undefined;
    }
  }
}

/** Several iterations as one, in the order in which their items come. */
export async function* merged<T>(
  sources: readonly AsyncGenerator<T, void, undefined>[],
): AsyncGenerator<T, void, undefined> {
  const next = async (
    source: AsyncGenerator<T, void, undefined>,
  ): Promise<[typeof source, IteratorResult<T, void>]> => [source, await source.next()];
  const waiting = new Map(sources.map((source) => [source, next(source)]));
  try {
    while (waiting.size > 0) {
      const [source, item] = await Promise.race(waiting.values());
      if (item.done === true) {
        waiting.delete(source);
        continue;
      }
      waiting.set(source, next(source));
      yield item.value;
    }
  } finally {
    for (const promise of waiting.values()) promise.catch(() => undefined);
  }
}

/** What a command prints, of one stream or both. */
export async function* output(
  context: Context,
  runId: string,
  commandId: string,
  options: OutputOptions,
): AsyncGenerator<OutputChunk, void, undefined> {
  const { stream = "standard" } = options;
  // Who leaves the loop ends both connections.
  const left = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
  const names: readonly StreamName[] = stream === "both" ? BOTH : [stream];
  try {
    yield* merged(names.map((name) => new Reader(context, runId, commandId, name, { ...options, signal }).chunks()));
  } finally {
    left.abort();
  }
}

/** Hands live output to a callback, both streams, each piece once. */
export class LiveOutput {
  readonly #readers: readonly Reader[];
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(
    context: Context,
    command: { id: string; runId: string },
    told: (chunk: OutputChunk) => void,
    given: AbortSignal | undefined,
  ) {
    const signal = given ? AbortSignal.any([given, this.#stop.signal]) : this.#stop.signal;
    this.#readers = BOTH.map((name) => new Reader(context, command.runId, command.id, name, { follow: true, signal }));
    this.#done = this.#hand(told);
    this.#done.catch(() => undefined); // whoever waits hears of it
  }

  async #hand(told: (chunk: OutputChunk) => void): Promise<void> {
    for await (const chunk of merged(this.#readers.map((reader) => reader.chunks()))) told(chunk);
  }

  /** What `promise` gives; rejects before it where the callback throws, or the output cannot be had. */
  async beside<T>(promise: Promise<T>): Promise<T> {
    const failed = this.#done.then(() => new Promise<never>(() => undefined));
    return await Promise.race([promise, failed]);
  }

  /** The command has ended: resolves when all that it printed was handed on. */
  async finish(): Promise<void> {
    const timer = setInterval(() => {
      for (const reader of this.#readers) reader.hurry(HURRY_MS);
    }, HURRY_MS / 4);
    try {
      await this.#done;
    } finally {
      clearInterval(timer);
    }
  }

  /** No more of it. */
  stop(): void {
    this.#stop.abort();
  }
}
