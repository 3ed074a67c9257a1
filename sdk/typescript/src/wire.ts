// SPDX-License-Identifier: Apache-2.0
// One request and its answer: HTTP/1.1 over a Unix socket, TCP or TLS. No repeating, no JSON.
import * as http from "node:http";
import * as https from "node:https";
import type { Address } from "./address.js";
import { sleep } from "./time.js";

/** What is sent: bytes, or pieces that come as they are asked for. */
export type Body =
  | { readonly bytes: Uint8Array }
  | { readonly pieces: () => AsyncIterable<Uint8Array>; readonly length?: number | undefined };

export interface WireRequest {
  readonly method: string;
  /** With its query, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body | undefined;
  /** Told the number of bytes that were handed on, after each piece. */
  readonly onSent?: ((bytes: number) => void) | undefined;
  /** Milliseconds without a byte in either direction after which the connection counts as lost. */
  readonly silenceMs: number;
  readonly pool: Pool;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connections of a kind share a maximum, past which requests wait for their turn:
 * `short` are those that are answered at once, `wait` long-polls, `stream` bodies that go on. `fresh` are requests that must not be
 * repeated: each has a new connection, as a kept one may be dead already.
 */
export type Pool = "short" | "wait" | "stream" | "fresh";

export const LONG_POLLS = 48;
const SOCKETS: Readonly<Record<Pool, number>> = { short: 16, wait: LONG_POLLS, stream: Infinity, fresh: 16 };
const CONNECT_MS = 10_000;
const CONTINUE_MS = 1_000; // as curl: then a body is sent without the server's word
const EXPECT_FROM = 1 << 20;
const PIECE = 256 << 10;

/** No answer, or not all of it. */
export class WireError extends Error {
  constructor(
    message: string,
    /** Whether the server may have got the request. */
    readonly sent: boolean,
    /** Whether the connection was one that had been kept, and had died meanwhile. */
    readonly stale: boolean,
    /** Whether nothing came for too long, rather than an end of the connection. */
    readonly silent: boolean,
    cause: unknown,
  ) {
    super(message, { cause });
  }

  /** Whether something answered, and not in HTTP. */
  get noHttp(): boolean {
    return codeOf(this.cause).startsWith("HPE_");
  }
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused: nothing listens there",
  ECONNRESET: "the connection broke",
  EPIPE: "the connection broke",
  ENOENT: "there is no such socket",
  EACCES: "permission denied: only root and members of the service's group may use this socket",
  ENOTFOUND: "the host name is not known",
  EAI_AGAIN: "the host name cannot be looked up now",
  EHOSTUNREACH: "no way to that host",
  ENETUNREACH: "no way to that network",
};

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function sentence(error: Error & { errors?: unknown[] }): string {
  const inner = error.errors?.[0]; // of a name with several addresses
  if (inner instanceof Error) return sentence(inner);
  const code = codeOf(error);
  return code.startsWith("HPE_") ? "what answers does not speak HTTP" : (SENTENCES[code] ?? error.message);
}

export class Wire {
  readonly #address: Address;
  readonly #agents = new Map<Pool, http.Agent>();

  constructor(address: Address) {
    this.#address = address;
  }

  #agent(pool: Pool): http.Agent {
    let agent = this.#agents.get(pool);
    if (!agent) {
      const options = { keepAlive: pool !== "fresh", maxSockets: SOCKETS[pool], maxFreeSockets: 16 };
      agent = this.#address.tls ? new https.Agent(options) : new http.Agent(options);
      this.#agents.set(pool, agent);
    }
    return agent;
  }

  /** Ends the connections that are kept for later. */
  #forget(): void {
    for (const agent of this.#agents.values()) {
      for (const socket of Object.values(agent.freeSockets).flatMap((all) => all ?? [])) socket.destroy();
    }
  }

  /** Ends every connection, those in use, too. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  /** Resolves with an answer's head, of whatever status; its body is to be read or destroyed. */
  async exchange(request: WireRequest): Promise<http.IncomingMessage> {
    const { signal, body } = request;
    signal?.throwIfAborted();
    const pieces = body !== undefined && "pieces" in body;
    const length = body && ("bytes" in body ? body.bytes.byteLength : body.length);
    // A server that is not going to take a large body says so before it is sent.
    const expects = pieces || (length ?? 0) >= EXPECT_FROM;
    const headers: Record<string, string> = { ...request.headers };
    if (length !== undefined) headers["content-length"] = String(length);
    if (expects) headers["expect"] = "100-continue";
    const req = (this.#address.tls ? https : http).request({
      ...this.#address.where,
      agent: this.#agent(request.pool),
      method: request.method,
      path: request.path,
      headers,
    });
    return await this.#answer(req, request, expects);
  }

  async #answer(req: http.ClientRequest, request: WireRequest, expects: boolean): Promise<http.IncomingMessage> {
    const { signal } = request;
    let sent = false;
    let connecting: NodeJS.Timeout | undefined;
    // Without an error: the socket may have been handed back in this very moment, and nobody listens to it.
    const abort = (): void => {
      req.destroy();
    };
    const failed = (error: Error): Error => {
      if (signal?.aborted) return signal.reason as Error;
      if (error instanceof WireError) return error;
      return new WireError(sentence(error), sent, sent && req.reusedSocket, error instanceof Silence, error);
    };
    signal?.addEventListener("abort", abort, { once: true });
    req.once("close", () => {
      clearTimeout(connecting);
      signal?.removeEventListener("abort", abort);
    });
    let answered: http.IncomingMessage | undefined;
    req.setTimeout(request.silenceMs, () => {
      this.#forget(); // what made this connection silent may have done so to the others
      (answered ?? req).destroy(new Silence(request.silenceMs));
    });
    req.once("socket", (socket) => {
      if (!socket.connecting) {
        sent = true;
        return;
      }
      connecting = setTimeout(() => {
        req.destroy(new Error(`no connection within ${String(CONNECT_MS / 1000)} s`));
      }, CONNECT_MS);
      socket.once(this.#address.tls ? "secureConnect" : "connect", () => {
        clearTimeout(connecting);
        sent = true;
      });
    });
    return await new Promise((resolve, reject) => {
      req.once("response", (answer) => {
        answered = answer;
        answer.once("error", () => undefined); // whoever reads hears of it
        resolve(answer);
      });
      req.on("error", (error) => {
        reject(failed(error));
      });
      send(req, request, expects, () => answered !== undefined).catch((error: unknown) => {
        // The caller's own source failed: nothing of the request counts.
        if (!answered) req.destroy();
        reject(signal?.aborted ? (signal.reason as Error) : (error as Error));
      });
    });
  }
}

/** Nothing came for too long. */
export class Silence extends Error {
  readonly code = "ESILENCE";

  constructor(ms: number) {
    super(`nothing came for ${String(Math.round(ms / 1000))} s`);
  }
}

async function event(req: http.ClientRequest, ...names: readonly string[]): Promise<void> {
  if (req.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const name of [...names, "close"]) req.off(name, done);
      resolve();
    };
    for (const name of [...names, "close"]) req.once(name, done);
  });
}

async function send(
  req: http.ClientRequest,
  request: WireRequest,
  expects: boolean,
  answered: () => boolean,
): Promise<void> {
  const { body } = request;
  if (!body) {
    req.end();
    return;
  }
  if (!expects && "bytes" in body) {
    req.end(body.bytes);
    return;
  }
  req.flushHeaders();
  const given = new AbortController();
  // Where nobody knows what 100-continue is, the body goes after a moment.
  await Promise.race([
    event(req, "continue", "response"),
    connected(req).then(() => sleep(CONTINUE_MS, given.signal).catch(() => undefined)),
  ]);
  given.abort();
  let bytes = 0;
  for await (const piece of "bytes" in body ? cut(body.bytes) : body.pieces()) {
    if (answered() || req.destroyed) return;
    if (!(piece instanceof Uint8Array)) throw new TypeError("what is written is text, or pieces that are Uint8Array");
    if (!req.write(piece)) await event(req, "drain", "response");
    bytes += piece.byteLength;
    request.onSent?.(bytes);
  }
  req.end();
}

async function connected(req: http.ClientRequest): Promise<void> {
  if (!req.socket) await event(req, "socket");
  const { socket } = req;
  if (socket?.connecting) await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
}

function* cut(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE) yield bytes.subarray(at, at + PIECE);
}
