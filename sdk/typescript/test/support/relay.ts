// SPDX-License-Identifier: Apache-2.0
// A relay of TCP or a Unix socket that does to connections what networks do.
import * as net from "node:net";
import type { AddressInfo } from "node:net";
import { parseAddress } from "../../src/address.js";

export class Relay implements AsyncDisposable {
  readonly #server: net.Server;
  readonly #target: net.NetConnectOpts;
  readonly #pairs = new Set<[net.Socket, net.Socket]>();
  #refuses = false;
  #swallows = false;
  readonly #silent = new Set<net.Socket>();
  readonly #sockets = new Set<net.Socket>();

  private constructor(url: string) {
    const { where } = parseAddress(url);
    this.#target = "socketPath" in where ? { path: where.socketPath } : where;
    this.#server = net.createServer((client) => {
      this.#join(client);
    });
  }

  static async start(url: string): Promise<Relay> {
    const relay = new Relay(url);
    await new Promise<void>((resolve) => relay.#server.listen(0, "127.0.0.1", resolve));
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  #join(client: net.Socket): void {
    if (this.#refuses) {
      client.resetAndDestroy();
      return;
    }
    const server = net.connect(this.#target);
    const pair: [net.Socket, net.Socket] = [client, server];
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      if (this.#silent.has(client)) return;
      client.destroy();
      server.destroy();
    };
    for (const socket of pair) {
      this.#sockets.add(socket);
      socket.on("error", end).on("close", end);
    }
    client.on("data", (data) => {
      if (!this.#silent.has(client)) server.write(data);
    });
    server.on("data", (data) => {
      if (this.#silent.has(client)) return;
      if (this.#swallows) {
        this.#swallows = false;
        end();
      } else client.write(data);
    });
  }

  /** All connections break. */
  cut(): void {
    for (const [client, server] of [...this.#pairs]) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  /** Cut, and no new ones for so long. */
  cutFor(ms: number): void {
    this.#refuses = true;
    this.cut();
    setTimeout(() => (this.#refuses = false), ms);
  }

  /** The connections that are there say nothing any more, and stay; new ones work. */
  silence(): void {
    for (const [client] of this.#pairs) this.#silent.add(client);
  }

  /** The next answer does not arrive: the connection breaks in place of it. */
  swallow(): void {
    this.#swallows = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
