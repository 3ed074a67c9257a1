// SPDX-License-Identifier: Apache-2.0
// A server that does what a test says.
import * as http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Maitento, type MaitentoOptions } from "../../src/index.js";

export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Answers a request, or returns undefined for 404. */
export type Handler = (asked: Asked, answer: http.ServerResponse, request: http.IncomingMessage) => unknown;

export const SERVER = { product: "maitento", version: "0.1.0", apiVersion: 1 };

export function json(
  answer: http.ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  answer.writeHead(status, { "content-type": "application/json", ...headers });
  answer.end(JSON.stringify(body));
}

export function problem(
  answer: http.ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
): void {
  const body = {
    type: "about:blank",
    title: "T",
    status,
    code,
    detail: `detail of ${code}`,
    help: "help",
    field: "name",
  };
  answer.writeHead(status, { "content-type": "application/problem+json", ...headers });
  answer.end(JSON.stringify(body));
}

export class Scripted implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: http.Server;
  readonly #sockets = new Set<Socket>();
  most = 0;
  connections = 0;

  private constructor(handler: Handler) {
    this.#server = http.createServer({ keepAliveTimeout: 60_000 }, (request, answer) => {
      void this.#hear(request, answer, handler);
    });
    this.#server.on("connection", (socket) => {
      this.connections++;
      this.#sockets.add(socket);
      this.most = Math.max(this.most, this.#sockets.size);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(handler: Handler, port = 0): Promise<Scripted> {
    const scripted = new Scripted(handler);
    await scripted.listen(port);
    return scripted;
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
  }

  async #hear(request: http.IncomingMessage, answer: http.ServerResponse, handler: Handler): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const url = new URL(request.url ?? "/", "http://x");
    const { method = "", headers } = request;
    const body = Buffer.concat(pieces).toString("utf8");
    const asked = { method, path: url.pathname, query: url.searchParams, headers, body };
    if (asked.path === "/v1/server") {
      json(answer, 200, SERVER);
      return;
    }
    this.asked.push(asked);
    const done: unknown = await handler(asked, answer, request);
    if (done === undefined && !answer.headersSent && !answer.destroyed) problem(answer, 404, "notFound");
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  client(options: MaitentoOptions = {}): Maitento {
    return new Maitento({ url: this.url, apiKey: "mt_test", namespace: "ns", ...options });
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Takes no new connections, and cuts those that are there. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.down();
  }
}

/** Waits until something is so, for 10 s at most. */
export async function until(so: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000;
  while (!so()) {
    if (performance.now() > end) throw new Error(`not within 10 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A promise and its outcome's functions. */
export function later<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}

/** A frame of server-sent events. */
export function frame(event: string, data: object, id?: number): string {
  return `${id === undefined ? "" : `id: ${String(id)}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

export function hello(after: number): string {
  return frame("hello", { after, heartbeatSeconds: 15 }, after);
}

export function ended(number: number, kind: string, id: string, runId: string): string {
  const more = { date: "2026-12-01T00:00:00Z", namespace: "ns", name: null, status: "Error", endReason: "exited" };
  return frame("change", { number, kind, change: "ended", id, runId, exitCode: 3, ...more }, number);
}

/** A record of a command. */
export function command(id: string, status: string, more: object = {}): object {
  const exitCode = status === "Finished" ? 0 : status === "Error" ? 3 : null;
  return { id, runId: "r1", status, exitCode, outputStandard: "", outputError: "", failureDetails: "", ...more };
}
