// SPDX-License-Identifier: Apache-2.0
// Calls of the API: the first contact, errors, JSON, pages, and repeating what is harmless to repeat.
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { parseAddress, type Address } from "./address.js";
import { MaitentoError } from "./errors.js";
import { encoded } from "./paths.js";
import type { Problem, ServerInfo } from "./records.js";
import { objectOf } from "./json.js";
import type { Settings } from "./settings.js";
import { backoff, now, orAborted, sleep } from "./time.js";
import { VERSION } from "./version.js";
import { Silence, Wire, WireError, type Body, type Pool } from "./wire.js";

/** Of every call. */
export interface CallOptions {
  /** Gives the call up: it rejects with the signal's reason. What the server does already is not ended by that. */
  signal?: AbortSignal | undefined;
}

export interface Call {
  readonly method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: Body | undefined;
  /** A body of JSON. */
  readonly json?: unknown;
  /** With it a POST may be repeated: it is never done twice. */
  readonly key?: string | undefined;
  /** A POST that does the same again when it is repeated. */
  readonly harmless?: boolean | undefined;
  readonly onSent?: ((bytes: number) => void) | undefined;
  readonly silenceMs?: number | undefined;
  readonly pool?: Pool | undefined;
  readonly signal?: AbortSignal | undefined;
}

const PATIENCE_MS = 60_000; // for which a server may be away
const ALIVE_MS = 5_000; // whoever answered so long after a request was there until then
const SILENCE_MS = 90_000;
const READ_SILENCE_MS = 45_000; // of what may be asked again
const GREETING_MS = 10_000;
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);
const API_VERSION = 1;
const PROBLEM_MAX = 4 << 20;
const FOREIGN_MAX = 64 << 10; // of what something else says
const CODES: Readonly<Record<number, string>> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "notFound",
  409: "conflict",
  410: "gone",
  413: "tooLarge",
  429: "rateLimited",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
  507: "diskFull",
};

export function newKey(): string {
  return randomUUID();
}

/** All of a body. An error when it breaks off, or is longer than `max`. */
export async function readAll(answer: IncomingMessage, max = Infinity): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.byteLength;
    if (length > max) throw new Error(`more than ${String(max)} bytes`); // leaving the loop ends the connection
  }
  return Buffer.concat(pieces, length);
}

function retryAfterOf(answer: IncomingMessage): number | undefined {
  const text = answer.headers["retry-after"] ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** How long the server has been away, and whether to go on asking. */
export class Patience {
  #since: number | undefined;
  #tries = 0;

  /** It answered. */
  reset(): void {
    this.#since = undefined;
    this.#tries = 0;
  }

  /** Waits for the next try, or throws where it has been away for too long. `asked`: when the failed try began. */
  async pause(
    error: MaitentoError,
    asked: number,
    unknown: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const silent = error.cause instanceof WireError && error.cause.silent;
    if (now() - asked > ALIVE_MS && !silent) this.reset();
    this.#since ??= now();
    const gone = now() - this.#since;
    if (gone >= PATIENCE_MS) {
      const { status, problem, cause } = error;
      throw new MaitentoError(
        unknown === undefined ? error.code : "outcomeUnknown",
        `${unknown === undefined ? "" : `outcome unknown: ${unknown}: `}no server for ${String(PATIENCE_MS / 1000)} s: ${error.message}`,
        { status, problem, cause, help: "see what became of it before you repeat it" },
      );
    }
    const wait = Math.max(backoff(this.#tries++, 200, 5_000), (error.retryAfter ?? 0) * 1000);
    await sleep(Math.min(wait, PATIENCE_MS - gone), signal);
  }
}

export class Http {
  readonly settings: Settings;
  readonly #address: Address;
  readonly #wire: Wire;
  readonly #authorization: string | undefined;
  #greeting: Promise<ServerInfo> | undefined;
  /** What the server said of itself; then it is known to be one. */
  #server: ServerInfo | undefined;
  #closed = false;

  constructor(settings: Settings) {
    this.settings = settings;
    this.#address = parseAddress(settings.url);
    if (settings.apiKey !== undefined && !/^[!-~]+$/.test(settings.apiKey))
      throw new MaitentoError("badRequest", "the API key holds a blank or control character: it is no key");
    this.#authorization = settings.apiKey === undefined ? undefined : `Bearer ${settings.apiKey}`;
    this.#wire = new Wire(this.#address);
  }

  close(): void {
    this.#closed = true;
    this.#wire.close();
  }

  // ---- the first contact ----

  /** Asks once who answers at the address; all else waits for that. */
  async hello(signal?: AbortSignal): Promise<ServerInfo> {
    if (this.#server) return this.#server;
    this.#greeting ??= this.#greet().then(
      (server) => (this.#server = server),
      (error: unknown) => {
        this.#greeting = undefined;
        throw error;
      },
    );
    return await orAborted(this.#greeting, signal);
  }

  async #greet(): Promise<ServerInfo> {
    const patience = new Patience();
    for (;;) {
      const asked = now();
      try {
        return await this.#ask();
      } catch (error) {
        // A server of ours that is just starting or stopping says so.
        if (!(error instanceof MaitentoError && error.problem && error.status === 503)) throw error;
        await patience.pause(error, asked, undefined, undefined);
      }
    }
  }

  async #ask(): Promise<ServerInfo> {
    let answer: IncomingMessage, text: string;
    this.#mayTalk();
    try {
      // Without the key: it is not known yet who hears it.
      const headers = { accept: "application/json", "user-agent": `maitento-typescript/${VERSION}` };
      answer = await this.#wire.exchange({
        method: "GET",
        path: "/v1/server",
        headers,
        silenceMs: GREETING_MS,
        pool: "short",
      });
      text = (await readAll(answer, FOREIGN_MAX)).toString("utf8");
    } catch (error) {
      if (error instanceof WireError && !error.noHttp) throw this.#unreachable(error, false);
      throw this.#foreign(error instanceof Error ? error.message : String(error), error);
    }
    const said = objectOf(text);
    if (answer.statusCode === 200 && said?.["product"] === "maitento") {
      const server = said as unknown as ServerInfo;
      if (server.apiVersion === API_VERSION) return server;
      throw this.#foreign(
        `it speaks version ${String(server.apiVersion)} of the API, and this SDK version ${String(API_VERSION)}`,
      );
    }
    const status = answer.statusCode ?? 0;
    if (AWAY.has(status)) throw this.#failure(answer, text);
    const kind = answer.headers["content-type"] ?? "no content type";
    throw this.#foreign(`it answers GET /v1/server with status ${String(status)} and ${said ? "other JSON" : kind}`);
  }

  #where(): string {
    const { url, urlSource } = this.settings;
    return `${url} (from ${urlSource})`;
  }

  #foreign(why: string, cause?: unknown): MaitentoError {
    const help = "give the address of a Maitento server: `url`, MAITENTO_URL or ~/.maitento/settings.json";
    return new MaitentoError("notMaitento", `what answers at ${this.#where()} is not a Maitento server: ${why}`, {
      help,
      cause,
    });
  }

  #unreachable(error: WireError, unknown: boolean): MaitentoError {
    if (this.#closed) return new MaitentoError("closed", "the client was closed", { cause: error });
    const help = "check the address and that the server runs (mt doctor tells), or name another: `url`, MAITENTO_URL";
    const what = unknown
      ? `outcome unknown: the server at ${this.#where()} got the request and did not answer`
      : `cannot reach the server at ${this.#where()}`;
    return new MaitentoError(
      unknown ? "outcomeUnknown" : "unreachable",
      `${what}: ${error.message}${unknown ? "" : `; ${help}`}`,
      { help, cause: error },
    );
  }

  #mayTalk(): void {
    if (this.#closed) throw new MaitentoError("closed", "the client was closed");
  }

  // ---- one request ----

  /** An answer of 2xx; its body is to be read. All else is an error. */
  async open(call: Call): Promise<IncomingMessage> {
    await this.hello(call.signal);
    return await this.#open(call);
  }

  async #open(call: Call): Promise<IncomingMessage> {
    const harmless = mayRepeat(call);
    const headers: Record<string, string> = { "user-agent": `maitento-typescript/${VERSION}`, ...call.headers };
    if (this.#authorization !== undefined) headers["authorization"] = this.#authorization;
    if (call.key !== undefined) headers["idempotency-key"] = call.key;
    if (call.json !== undefined) headers["content-type"] = "application/json";
    const body = call.json === undefined ? call.body : { bytes: Buffer.from(JSON.stringify(call.json)) };
    const { method, path, onSent, signal } = call;
    const pool = call.pool ?? (harmless ? "short" : "fresh");
    const request = {
      method,
      path,
      headers,
      body,
      onSent,
      silenceMs: call.silenceMs ?? (method === "GET" ? READ_SILENCE_MS : SILENCE_MS),
      pool,
      signal,
    };
    for (;;) {
      this.#mayTalk();
      try {
        const answer = await this.#wire.exchange(request);
        const status = answer.statusCode ?? 0;
        if (status >= 200 && status <= 299) return answer;
        throw this.#failure(answer, (await readAll(answer, PROBLEM_MAX).catch(() => Buffer.alloc(0))).toString("utf8"));
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        // The server closes connections that are idle: another one, at once.
        if (error.stale && !error.silent && harmless && !this.#closed) continue;
        throw this.#unreachable(error, error.sent && !harmless);
      }
    }
  }

  #failure(answer: IncomingMessage, text: string): MaitentoError {
    const status = answer.statusCode ?? 0;
    const said = objectOf(text);
    const problem = typeof said?.["code"] === "string" ? (said as unknown as Problem) : undefined;
    let message = problem?.detail ?? `the server at ${this.#where()} answered with status ${String(status)}`;
    for (const found of problem?.diagnostics ?? []) {
      message += `\n  ${found.file ?? "?"}:${String(found.line)}:${String(found.column)}: ${found.message}`;
      if (found.hint !== undefined) message += ` (${found.hint})`;
    }
    const code = problem?.code ?? CODES[status] ?? (status >= 500 ? "internal" : "badRequest");
    return new MaitentoError(code, message, { status, problem, retryAfter: retryAfterOf(answer) });
  }

  /** Whether the server is only away for a moment. */
  isAway(error: unknown): error is MaitentoError {
    if (!(error instanceof MaitentoError)) return false;
    if (error.status !== undefined) return AWAY.has(error.status) && error.code !== "outOfMemory";
    return error.code === "unreachable";
  }

  /** An error that came while a body was read. */
  broken(error: unknown, signal?: AbortSignal): Error {
    if (signal?.aborted) return signal.reason as Error;
    if (error instanceof MaitentoError) return error;
    if (error instanceof Error && "code" in error)
      return this.#unreachable(
        new WireError("the answer broke off", true, false, error instanceof Silence, error),
        false,
      );
    return error as Error;
  }

  // ---- with JSON ----

  /** One try. */
  async once(call: Call): Promise<unknown> {
    const answer = await this.open(call);
    let text: string;
    try {
      text = (await readAll(answer)).toString("utf8");
    } catch (error) {
      const failure = this.broken(error, call.signal);
      if (mayRepeat(call) || !(failure instanceof MaitentoError)) throw failure;
      throw new MaitentoError("outcomeUnknown", `outcome unknown: ${failure.message}`, { cause: error });
    }
    if (text === "") return undefined;
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      throw new MaitentoError("internal", `the answer of ${this.#where()} to ${call.method} ${call.path} is no JSON`, {
        cause: error,
      });
    }
  }

  /** Repeats what is harmless to repeat while the server is away. */
  async call<T>(call: Call): Promise<T> {
    await this.hello(call.signal);
    return (await this.patiently(
      () => this.once(call),
      call,
      call.key === undefined ? undefined : "it may have been done",
    )) as T;
  }

  async patiently<T>(
    attempt: () => Promise<T>,
    call: Pick<Call, "method" | "key" | "harmless" | "body" | "signal">,
    unknown?: string,
  ): Promise<T> {
    const patience = new Patience();
    for (;;) {
      const asked = now();
      try {
        return await attempt();
      } catch (error) {
        if (!this.isAway(error) || !mayRepeat(call) || this.#closed) throw error;
        await patience.pause(error, asked, unknown, call.signal);
      }
    }
  }

  /** The items of a list, page by page; `limit`: so many at most. */
  async list<T>(path: string, limit: number | undefined, signal: AbortSignal | undefined): Promise<T[]> {
    const items: T[] = [];
    let after = "";
    while (limit === undefined || items.length < limit) {
      const size = Math.min(1000, limit === undefined ? 1000 : limit - items.length);
      const page = await this.call<{ items: T[]; next: string | null }>({
        method: "GET",
        path: `${path}${path.includes("?") ? "&" : "?"}limit=${String(size)}${after && `&after=${encoded(after)}`}`,
        signal,
      });
      items.push(...page.items);
      if (page.next === null) break;
      after = page.next;
    }
    return items;
  }
}

/** GET, PUT and DELETE do the same again; a POST with a key is done once. A source that was read from cannot be read again. */
function mayRepeat(call: Pick<Call, "method" | "key" | "harmless" | "body">): boolean {
  if (call.body && "pieces" in call.body) return false;
  return (
    call.method === "GET" ||
    call.method === "PUT" ||
    call.method === "DELETE" ||
    call.key !== undefined ||
    call.harmless === true
  );
}
