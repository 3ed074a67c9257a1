// SPDX-License-Identifier: Apache-2.0
import type { Context, ListOptions } from "./context.js";
import { orNull } from "./errors.js";
import type { CallOptions } from "./http.js";
import { pathOf } from "./paths.js";
import type { Member, Namespace, Whoami } from "./records.js";

/** Namespaces, in which all else is, and who shares them. */
export class Namespaces {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /** One namespace; null where there is none that you may see. */
  async find(name: string, options: CallOptions = {}): Promise<Namespace | null> {
    return await orNull(this.get(name, options));
  }

  /**
   * One namespace.
   * @operationId getNamespace
   */
  async get(name: string, options: CallOptions = {}): Promise<Namespace> {
    return await this.#context.http.call({ method: "GET", path: pathOf(["namespaces", name]), signal: options.signal });
  }

  /**
   * The namespaces that you may see, in the order of their names.
   * @operationId listNamespaces
   */
  async list(options: ListOptions = {}): Promise<Namespace[]> {
    return await this.#context.http.list(pathOf(["namespaces"]), options.limit, options.signal);
  }

  /**
   * Makes a namespace. The first that you make becomes your default (`becameDefault`).
   * @operationId createNamespace
   */
  async create(namespace: { name: string }, options: CallOptions = {}): Promise<Namespace> {
    this.#context.forgetDefault();
    const json = { name: namespace.name };
    return await this.#context.http.call({
      method: "POST",
      path: pathOf(["namespaces"]),
      json,
      signal: options.signal,
    });
  }

  /**
   * Removes an empty namespace; of one that is not the error (`conflict`) lists what is in it.
   * @operationId deleteNamespace
   */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    this.#context.forgetDefault();
    await this.#context.http.call({ method: "DELETE", path: pathOf(["namespaces", name]), signal: options.signal });
  }

  /**
   * Chooses your default on the server: what is meant where nobody names a namespace.
   * @operationId setDefaultNamespace
   */
  async setDefault(name: string, options: CallOptions = {}): Promise<Whoami> {
    this.#context.forgetDefault();
    return await this.#context.http.call({
      method: "PUT",
      path: pathOf(["default-namespace"]),
      json: { name },
      signal: options.signal,
    });
  }

  /**
   * Users who share a namespace with its owner, who is not among them.
   * @operationId listMembers
   */
  async listMembers(name: string, options: ListOptions = {}): Promise<Member[]> {
    return await this.#context.http.list(pathOf(["namespaces", name, "members"]), options.limit, options.signal);
  }

  /**
   * Makes a user a member, who may then use what is in it.
   * @operationId addMember
   */
  async addMember(name: string, user: string, options: CallOptions = {}): Promise<void> {
    await this.#context.http.call({
      method: "PUT",
      path: pathOf(["namespaces", name, "members", user]),
      signal: options.signal,
    });
  }

  /**
   * Members may remove themselves.
   * @operationId removeMember
   */
  async removeMember(name: string, user: string, options: CallOptions = {}): Promise<void> {
    await this.#context.http.call({
      method: "DELETE",
      path: pathOf(["namespaces", name, "members", user]),
      signal: options.signal,
    });
  }
}
