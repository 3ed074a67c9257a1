// SPDX-License-Identifier: Apache-2.0
import type { Context } from "./context.js";
import type { CallOptions } from "./http.js";
import { given, idOf, pathOf, type IdOf } from "./paths.js";
import type { Shell } from "./records.js";

export interface ShellStart extends CallOptions {
  /** `maitento` where it is absent. */
  user?: string | undefined;
  /** TERM; `xterm` where it is absent. */
  term?: string | undefined;
  columns?: number | undefined;
  rows?: number | undefined;
}

/** Shells on terminals in runs. They are no commands: nothing of them is kept. */
export class Shells {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Starts a login shell on a terminal. Read its `output` within 15 seconds: without a reader for so long it is hung up.
   * @operationId startShell
   */
  async start(run: IdOf, options: ShellStart = {}): Promise<Shell> {
    const { user, term, columns, rows, signal } = options;
    const json = given({ user, term, columns, rows });
    return await this.#context.http.call({
      method: "POST",
      path: pathOf(["capsule-runs", idOf(run), "shells"]),
      json,
      signal,
    });
  }

  /**
   * The shells of a run: those that run, and for five minutes those that have ended.
   * @operationId listShells
   */
  async list(run: IdOf, options: CallOptions = {}): Promise<Shell[]> {
    const path = pathOf(["capsule-runs", idOf(run), "shells"]);
    const found = await this.#context.http.call<{ items: Shell[] }>({ method: "GET", path, signal: options.signal });
    return found.items;
  }

  /**
   * A shell as it is.
   * @operationId getShell
   */
  async get(run: IdOf, shell: IdOf, options: CallOptions = {}): Promise<Shell> {
    const path = pathOf(["capsule-runs", idOf(run), "shells", idOf(shell)]);
    return await this.#context.http.call({ method: "GET", path, signal: options.signal });
  }

  /**
   * Hangs it up: SIGHUP to what is on its terminal, SIGKILL to what is left after three seconds.
   * @operationId closeShell
   */
  async close(run: IdOf, shell: IdOf, options: CallOptions = {}): Promise<void> {
    const path = pathOf(["capsule-runs", idOf(run), "shells", idOf(shell)]);
    await this.#context.http.call({ method: "DELETE", path, signal: options.signal });
  }

  /**
   * What the terminal shows from now on, until the shell ends. It has one reader: another takes its place. A break loses what was on its
   * way, so it is an error here and not mended.
   * @operationId getShellOutput
   */
  async *output(run: IdOf, shell: IdOf, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { http } = this.#context;
    const path = pathOf(["capsule-runs", idOf(run), "shells", idOf(shell), "output"]);
    // A shell may be silent for as long as it likes.
    const answer = await http.open({ method: "GET", path, pool: "stream", silenceMs: 0, signal: options.signal });
    try {
      for await (const piece of answer as AsyncIterable<Buffer>) yield piece;
    } catch (error) {
      throw http.broken(error, options.signal);
    }
  }

  /**
   * Types text (as UTF-8) or bytes; Ctrl-C is `"\x03"`.
   * @operationId typeIntoShell
   */
  async type(run: IdOf, shell: IdOf, data: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    const path = pathOf(["capsule-runs", idOf(run), "shells", idOf(shell), "input"]);
    const headers = { "content-type": "application/octet-stream" };
    const body = { bytes: typeof data === "string" ? Buffer.from(data, "utf8") : data };
    await this.#context.http.call({ method: "POST", path, headers, body, signal: options.signal });
  }

  /**
   * Gives the terminal another size; programs on it get SIGWINCH.
   * @operationId resizeShell
   */
  async resize(run: IdOf, shell: IdOf, columns: number, rows: number, options: CallOptions = {}): Promise<void> {
    const path = pathOf(["capsule-runs", idOf(run), "shells", idOf(shell), "size"]);
    await this.#context.http.call({ method: "PUT", path, json: { columns, rows }, signal: options.signal });
  }
}
