// SPDX-License-Identifier: Apache-2.0
// The event stream: what happens on the server, as it happens, over one connection that is made again when it breaks.
import type { IncomingMessage } from "node:http";
import { MaitentoError } from "./errors.js";
import type { CallOptions, Http } from "./http.js";
import { objectOf } from "./json.js";
import { idOf, pathOf, type IdOf } from "./paths.js";
import type { EventEnd, EventHello, EventKind, MaitentoEvent } from "./records.js";
import { FrameParser, type Frame } from "./sse.js";
import { backoff, pause } from "./time.js";
import type { Listener, Waiting } from "./waiting.js";

export interface EventOptions extends CallOptions {
  /** Ends the stream whenever it is aborted: who reads it gets the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Only events of this namespace. Without `run`, `namespace` and `kind` the stream serves all who wait in this client. */
  namespace?: string | undefined;
  /** Only events of these kinds. */
  kind?: EventKind | readonly EventKind[] | undefined;
  /** Only events of this run, whichever kind it is, and of its commands. */
  run?: IdOf | undefined;
  /** What is printed and said, too; needs `run`. */
  output?: boolean | undefined;
  /** Begin above this number of an earlier event. Numbers below what is kept are an error (`gone`). */
  after?: number | undefined;
  /** Begin so many kept events back, up to 1,000. */
  last?: number | undefined;
}

const SILENCE_MS = 45_000; // the server says something every 15 s
const BACKOFF_FIRST_MS = 200;
const BACKOFF_MOST_MS = 5_000;
const QUEUE_MAX = 10_000;

/** Opens event streams. */
export class Events {
  readonly #http: Http;
  readonly #waiting: Waiting;
  readonly #streams = new Set<EventStream>();

  constructor(http: Http, waiting: Waiting) {
    this.#http = http;
    this.#waiting = waiting;
  }

  /**
   * Opens a stream, and resolves when it hears: whatever happens from then on comes. While it is open, `execAndWait` and its kin in
   * this client hear of ends by it, as they happen. Close it when done: `await using events = await mt.events.open()`, or `close()`.
   * @operationId streamEvents
   */
  async open(options: EventOptions = {}): Promise<EventStream> {
    const stream: EventStream = await EventStream.open(this.#http, this.#waiting, options, () =>
      this.#streams.delete(stream),
    );
    this.#streams.add(stream);
    return stream;
  }

  /** The events that are kept: from `after`, or the last `last`, up to now. */
  async list(options: EventOptions = {}): Promise<MaitentoEvent[]> {
    const found: MaitentoEvent[] = [];
    await this.#http.hello(options.signal);
    const path = address(options, options.after, false);
    return await this.#http.patiently(
      async () => {
        found.length = 0;
        const answer = await this.#http.open({ ...STREAM, path, signal: options.signal });
        const parser = new FrameParser();
        try {
          for await (const bytes of answer as AsyncIterable<Buffer>) {
            for (const frame of parser.push(bytes)) found.push(...asEvents(frame));
          }
        } catch (error) {
          throw this.#http.broken(error, options.signal);
        }
        return found;
      },
      { method: "GET", signal: options.signal },
    );
  }

  /** Closes all that are open. */
  close(): void {
    for (const stream of this.#streams) stream.stop();
    this.#streams.clear();
  }
}

const STREAM = {
  method: "GET",
  pool: "stream",
  silenceMs: SILENCE_MS,
  headers: { accept: "text/event-stream" },
} as const;

function address(options: EventOptions, after: number | undefined, follow: boolean): string {
  const { kind } = options;
  return pathOf(["events"], {
    after,
    last: after === undefined ? options.last : undefined,
    namespace: options.namespace,
    kind: kind === undefined ? undefined : typeof kind === "string" ? kind : kind.join(","),
    run: options.run === undefined ? undefined : idOf(options.run),
    output: options.output === true ? true : undefined,
    follow: follow ? undefined : false,
  });
}

function dataOf<T>(frame: Frame): Partial<T> {
  return (objectOf(frame.data) ?? {}) as Partial<T>;
}

const TYPES: ReadonlySet<string> = new Set(["change", "output", "console", "text"]);

function asEvents(frame: Frame): MaitentoEvent[] {
  if (!TYPES.has(frame.event)) return [];
  const data = objectOf(frame.data);
  return data ? [{ ...data, event: frame.event } as unknown as MaitentoEvent] : [];
}

/**
 * What happens on the server, in order. Iterate over it with `for await`; events that came since it was opened are kept, 10,000 at
 * most (then the oldest go, and a `gap` event says so). It has one reader: of two loops each event goes to one. Where the connection
 * breaks or is silent for 45 s it is made again, after the last event that came. It ends when it is closed, or with the run it is of.
 *
 * An open stream that nobody reads does not keep the process alive.
 */
export class EventStream implements AsyncIterable<MaitentoEvent>, AsyncDisposable, Listener {
  readonly #http: Http;
  readonly #waiting: Waiting;
  readonly #options: EventOptions;
  readonly #ended: () => void;
  readonly #stop = new AbortController();
  readonly #queue: MaitentoEvent[] = [];
  #wake: (() => void) | undefined;
  #after: number | undefined;
  #failure: Error | undefined;
  #done = false;
  #connected = false;

  private constructor(http: Http, waiting: Waiting, options: EventOptions, ended: () => void) {
    this.#http = http;
    this.#waiting = waiting;
    this.#options = options;
    this.#ended = ended;
    this.#after = options.after;
  }

  /** @internal */
  static async open(http: Http, waiting: Waiting, options: EventOptions, ended: () => void): Promise<EventStream> {
    const stream = new EventStream(http, waiting, options, ended);
    const { signal } = options;
    signal?.throwIfAborted();
    const stop = (): void => {
      stream.#end(signal?.reason as Error);
      stream.stop();
    };
    signal?.addEventListener("abort", stop, { once: true });
    stream.#stop.signal.addEventListener("abort", () => signal?.removeEventListener("abort", stop), { once: true });
    try {
      await http.hello(signal);
      const connection = await http.patiently(() => stream.#connect(), { method: "GET", signal });
      void stream.#run(connection);
      return stream;
    } catch (error) {
      stream.stop();
      signal?.throwIfAborted();
      throw error;
    }
  }

  // ---- for those who read ----

  async *[Symbol.asyncIterator](): AsyncGenerator<MaitentoEvent, void, undefined> {
    for (;;) {
      for (let event = this.#queue.shift(); event; event = this.#queue.shift()) yield event;
      if (this.#failure) throw this.#failure;
      if (this.#done) return;
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const alive = setInterval(() => undefined, 1 << 30); // who waits for an event keeps the process alive
    try {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    } finally {
      clearInterval(alive);
    }
  }

  /** The number after which it would go on: give it as `after` to another stream. */
  get after(): number | undefined {
    return this.#after;
  }

  /** Closes the stream. Who waits for an end in this client goes on by asking. */
  close(): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  stop(): void {
    this.#end(undefined);
  }

  /** @internal */
  hears(kind: EventKind, id: string, runId: string): boolean {
    const { namespace, kind: kinds, run } = this.#options;
    if (!this.#connected || namespace !== undefined) return false;
    if (run !== undefined && idOf(run) !== runId && idOf(run) !== id) return false;
    return kinds === undefined || kinds === kind || (typeof kinds !== "string" && kinds.includes(kind));
  }

  // ---- the connection ----

  #end(failure: Error | undefined): void {
    if (this.#done) return;
    this.#done = true;
    this.#failure = failure;
    this.#lost();
    this.#wake?.();
    this.#ended();
    this.#stop.abort(new Error("the event stream has ended"));
  }

  #lost(): void {
    this.#connected = false;
    this.#waiting.disconnected(this);
  }

  #push(event: MaitentoEvent): void {
    this.#queue.push(event);
    if (this.#queue.length > QUEUE_MAX) {
      this.#queue.splice(0, QUEUE_MAX / 10);
      if (this.#queue[0]?.event !== "gap") this.#queue.unshift({ event: "gap" });
    }
    this.#wake?.();
    this.#wake = undefined;
  }

  /** A connection on which the server has said hello. */
  async #connect(): Promise<Connection> {
    const headers = {
      ...STREAM.headers,
      ...(this.#after === undefined ? {} : { "last-event-id": String(this.#after) }),
    };
    const path = address(this.#options, this.#after, true);
    const answer = await this.#http.open({ ...STREAM, headers, path, signal: this.#stop.signal });
    const connection = new Connection(answer);
    try {
      const hello = await connection.next();
      if (hello?.event !== "hello") throw new Error("no hello");
      this.#after = dataOf<EventHello>(hello).after ?? this.#after;
    } catch (error) {
      answer.destroy();
      throw this.#http.broken(
        Object.assign(new Error("the event stream broke off", { cause: error }), { code: "ECONNRESET" }),
        this.#stop.signal,
      );
    }
    // Open, but of itself no reason for the process to live.
    answer.socket.unref();
    this.#connected = true;
    this.#waiting.connected(this);
    return connection;
  }

  async #run(first: Connection): Promise<void> {
    let connection: Connection | undefined = first;
    for (let tries = 0; !this.#done;) {
      if (connection) {
        tries = 0;
        await this.#read(connection);
        if (this.#finished()) return;
        this.#lost();
      }
      await pause(backoff(tries++, BACKOFF_FIRST_MS, BACKOFF_MOST_MS), this.#stop.signal);
      if (this.#finished()) return;
      connection = await this.#again();
    }
  }

  #finished(): boolean {
    return this.#done;
  }

  async #again(): Promise<Connection | undefined> {
    try {
      return await this.#connect();
    } catch (error) {
      if (this.#done) return undefined;
      if (error instanceof MaitentoError && error.code === "gone") {
        this.#after = undefined; // from now on, then; whoever waits asks once
        this.#push({ event: "gap" });
        return undefined;
      }
      if (this.#http.isAway(error)) return undefined;
      if (error instanceof MaitentoError && error.code === "rateLimited") {
        await pause((error.retryAfter ?? 1) * 1000, this.#stop.signal);
        return undefined;
      }
      this.#end(error as Error);
      return undefined;
    }
  }

  async #read(connection: Connection): Promise<void> {
    try {
      for (let frame = await connection.next(); frame && !this.#done; frame = await connection.next()) {
        if (frame.event === "end") {
          this.#told(dataOf<EventEnd>(frame));
          return;
        }
        this.#hear(frame);
      }
    } catch {
      // Cut or silent: it is made again.
    } finally {
      connection.close();
    }
  }

  /** Why the server ends the stream; for most reasons it is to come back. */
  #told(end: Partial<EventEnd>): void {
    this.#after = end.after ?? this.#after;
    if (end.code === "runEnded") this.#end(undefined);
    else if (end.code === "accessLost")
      this.#end(new MaitentoError("forbidden", end.sentence ?? "the right to these events is gone"));
  }

  #hear(frame: Frame): void {
    for (const event of asEvents(frame)) {
      if (event.event === "change") {
        this.#after = event.number;
        this.#waiting.tell(event.id, event.change === "ended");
      }
      this.#push(event);
    }
  }
}

/** The frames of one answer. */
class Connection {
  readonly #answer: IncomingMessage;
  readonly #parser = new FrameParser();
  readonly #bytes: AsyncIterator<Buffer>;
  #frames: Frame[] = [];

  constructor(answer: IncomingMessage) {
    this.#answer = answer;
    this.#bytes = (answer as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** The next frame; undefined at the end of the body. */
  async next(): Promise<Frame | undefined> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame) return frame;
      const piece = await this.#bytes.next();
      if (piece.done === true) return undefined;
      this.#frames = this.#parser.push(piece.value);
    }
  }

  close(): void {
    this.#answer.destroy();
  }
}
