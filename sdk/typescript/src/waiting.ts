// SPDX-License-Identifier: Apache-2.0
// Waiting for the end of a run or command. Only its record, read from the server, proves an end: events and answers that come early
// do no more than say when to ask.
import type { Http } from "./http.js";
import { MaitentoError } from "./errors.js";
import type { EventKind } from "./records.js";
import { now, orAborted, sleep } from "./time.js";
import { LONG_POLLS } from "./wire.js";

/** What an open event stream has heard of ends, for all who wait. */
export interface Listener {
  /** Whether it hears of this run or command now. */
  hears(kind: EventKind, id: string, runId: string): boolean;
}

export interface Subject<T> {
  readonly kind: EventKind;
  readonly id: string;
  /** The run that an event of it names: its own id, or a command's run. */
  readonly runId: string;
  /** For people: "command 0123…". */
  readonly name: string;
  /** Its address with `?wait=SECONDS`; 0 for at once. */
  readonly path: (seconds: number) => string;
  readonly reached: (record: T) => boolean;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Gives up after so long, and returns the record as it is then. */
  readonly timeoutMs?: number | undefined;
}

const LONG_POLL_S = 20;
const SILENCE_MS = 15_000; // past the time for which the server was asked to wait
const POLL_MS = 1_000; // where long-polls do not work
const CROWD_MS = 2_000; // where many wait, and no event stream is open
const DOUBT_MS = 60_000; // after which one who waits for an event asks all the same
const REMEMBERED = 4_096;

/** A moment, to tell later whether all since then was heard. */
export interface Mark {
  readonly epoch: number;
  readonly heard: number;
}

export class Waiting {
  readonly #http: Http;
  readonly #listeners = new Set<Listener>();
  readonly #waiters = new Map<string, Set<() => void>>();
  /** Ids of what ended lately, the oldest first. */
  readonly #ended = new Set<string>();
  #heard = 0;
  #epoch = 0;
  #longPolls = 0;

  constructor(http: Http) {
    this.#http = http;
  }

  // ---- what event streams tell ----

  /** A stream is there (again): what happened before it nobody heard. */
  connected(listener: Listener): void {
    this.#listeners.add(listener);
    this.#missed();
  }

  /** A stream is gone, for a moment or for good. */
  disconnected(listener: Listener): void {
    if (this.#listeners.delete(listener)) this.#missed();
  }

  #missed(): void {
    this.#epoch++;
    for (const wake of [...this.#waiters.values()].flatMap((all) => [...all])) wake();
  }

  /** Something came of this id. */
  tell(id: string, ended: boolean): void {
    if (ended) {
      this.#heard++;
      this.#ended.delete(id); // and to the end of the order
      this.#ended.add(id);
      const [oldest] = this.#ended;
      if (this.#ended.size > REMEMBERED && oldest !== undefined) this.#ended.delete(oldest);
    }
    this.#wake(id);
  }

  #wake(id: string): void {
    for (const wake of this.#waiters.get(id) ?? []) wake();
  }

  // ---- who waits ----

  mark(): Mark {
    return { epoch: this.#epoch, heard: this.#heard };
  }

  /** Whether a stream hears of such things: then a request need not wait by itself. */
  hears(kind: EventKind, id: string, runId: string): boolean {
    return [...this.#listeners].some((listener) => listener.hears(kind, id, runId));
  }

  /** Seconds that a request that starts something may wait for its end: none where a stream tells, or many wait. */
  seconds(kind: EventKind, runId: string, options: WaitOptions): number {
    if (this.hears(kind, "", runId) || this.#longPolls >= LONG_POLLS) return 0;
    return Math.min(LONG_POLL_S, Math.ceil((options.timeoutMs ?? Infinity) / 1000));
  }

  /** Does something that may wait for `seconds`, in its turn. */
  async polling<T>(seconds: number, ask: (silenceMs: number) => Promise<T>): Promise<T> {
    if (seconds === 0) return await ask(SILENCE_MS * 2);
    this.#longPolls++;
    try {
      return await ask(seconds * 1000 + SILENCE_MS);
    } finally {
      this.#longPolls--;
    }
  }

  /**
   * The record when it has ended (or is ready: `reached`), or as it is after `timeoutMs`. `known`: what was read last, with the moment
   * before that was asked for.
   */
  async until<T>(subject: Subject<T>, options: WaitOptions, known?: { record: T; mark: Mark }): Promise<T> {
    const { signal } = options;
    const end = options.timeoutMs === undefined ? Infinity : now() + options.timeoutMs;
    const poll: PollState = { cut: false };
    let fresh = known;
    if (fresh && subject.reached(fresh.record)) return fresh.record;
    for (;;) {
      signal?.throwIfAborted();
      if (this.hears(subject.kind, subject.id, subject.runId)) {
        const ear = this.#listen(subject.id);
        try {
          const still = fresh !== undefined && this.#knows(fresh.mark, subject.id);
          const record = still && fresh ? fresh.record : await this.#get(subject, 0, signal);
          fresh = undefined;
          if (subject.reached(record) || now() >= end) return record;
          await ear.heard(Math.min(DOUBT_MS, end - now()), signal);
        } finally {
          ear.close();
        }
      } else {
        const record = await this.#poll(subject, end, poll, signal);
        if (subject.reached(record) || now() >= end) return record;
      }
    }
  }

  /** Whether all that came since the mark was heard, and this id's end is not among it. */
  #knows(mark: Mark, id: string): boolean {
    return mark.epoch === this.#epoch && this.#heard - mark.heard < REMEMBERED && !this.#ended.has(id);
  }

  #listen(id: string): { heard: (ms: number, signal: AbortSignal | undefined) => Promise<void>; close: () => void } {
    const all = this.#waiters.get(id) ?? new Set();
    let woken = false;
    let wake = (): void => {
      woken = true;
    };
    const waiter = (): void => {
      wake();
    };
    this.#waiters.set(id, all.add(waiter));
    return {
      heard: async (ms, signal) => {
        if (woken) return;
        let timer: NodeJS.Timeout | undefined;
        // The timer keeps the process alive as well: an idle stream does not.
        const heard = new Promise<void>((resolve) => {
          wake = resolve;
          timer = setTimeout(resolve, ms);
        });
        try {
          await orAborted(heard, signal);
        } finally {
          clearTimeout(timer);
        }
      },
      close: () => {
        all.delete(waiter);
        if (all.size === 0) this.#waiters.delete(id);
      },
    };
  }

  async #get<T>(subject: Subject<T>, seconds: number, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await this.#http.call<T>({ method: "GET", path: subject.path(seconds), signal });
    } catch (error) {
      throw this.#unknown(subject, error);
    }
  }

  /** Where no server was found for a minute nobody knows what became of what was waited for. */
  #unknown<T>(subject: Subject<T>, error: unknown): unknown {
    if (!this.#http.isAway(error)) return error;
    const { status, problem } = error;
    const help = "ask for it again when the server is back: it is not done twice by that";
    return new MaitentoError("outcomeUnknown", `outcome unknown of ${subject.name}: ${error.message}`, {
      status,
      problem,
      help,
      cause: error,
    });
  }

  /** One step without an event stream: a long-poll, or where that does not work or too many wait, a plain question. */
  async #poll<T>(subject: Subject<T>, end: number, state: PollState, signal: AbortSignal | undefined): Promise<T> {
    const left = Math.max(0, Math.ceil((end - now()) / 1000));
    if (state.pause !== undefined) await sleep(Math.max(0, Math.min(state.pause, end - now())), signal);
    delete state.pause;
    if (state.cut || this.#longPolls >= LONG_POLLS) {
      state.pause = state.cut ? POLL_MS : CROWD_MS * (0.75 + Math.random() / 2);
      return await this.#get(subject, 0, signal);
    }
    const seconds = Math.min(LONG_POLL_S, left);
    const asked = now();
    try {
      const record = await this.polling(seconds, async (silenceMs) => {
        const call = {
          method: "GET",
          path: subject.path(seconds),
          pool: seconds > 0 ? "wait" : "short",
          silenceMs,
          signal,
        } as const;
        return (await this.#http.once(call)) as T;
      });
      // Should an answer come at once though nothing happened, do not ask in a tight loop.
      if (now() - asked < 200) state.pause = POLL_MS;
      return record;
    } catch (error) {
      if (!this.#http.isAway(error)) throw error;
      // Something on the way may not like requests that wait.
      state.cut = true;
      return await this.#get(subject, 0, signal);
    }
  }
}

interface PollState {
  cut: boolean;
  pause?: number;
}
