// SPDX-License-Identifier: Apache-2.0
// API keys and users.
import type { Context, ListOptions } from "./context.js";
import type { CallOptions } from "./http.js";
import { given, pathOf } from "./paths.js";
import type { Key, NewKey, NewUser, User } from "./records.js";

/** When a key ends: a time as the server writes them, or a Date; absent for never. */
interface Expiry {
  expires?: string | Date | undefined;
}

function expiry(of: Expiry): string | undefined {
  return of.expires instanceof Date ? of.expires.toISOString() : of.expires;
}

/** API keys. */
export class Keys {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Your keys, without their secret part; those of another `user` for administrators.
   * @operationId listKeys
   */
  async list(options: ListOptions & { user?: string | undefined } = {}): Promise<Key[]> {
    return await this.#context.http.list(pathOf(["keys"], { user: options.user }), options.limit, options.signal);
  }

  /**
   * Makes a key; `key` of the answer is shown this once. For another `user`: by administrators. Not from inside a capsule.
   * @operationId createKey
   */
  async create(key: { name: string; user?: string | undefined } & Expiry, options: CallOptions = {}): Promise<NewKey> {
    const json = given({ name: key.name, expires: expiry(key), user: key.user });
    return await this.#context.http.call({ method: "POST", path: pathOf(["keys"]), json, signal: options.signal });
  }

  /**
   * Revokes a key.
   * @operationId deleteKey
   */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#context.http.call({ method: "DELETE", path: pathOf(["keys", id]), signal: options.signal });
  }
}

/** Users, for administrators. */
export class Users {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * All users.
   * @operationId listUsers
   */
  async list(options: ListOptions = {}): Promise<User[]> {
    return await this.#context.http.list(pathOf(["users"]), options.limit, options.signal);
  }

  /**
   * Makes a user with a first key, which is shown this once. Not from inside a capsule.
   * @operationId createUser
   */
  async create(
    user: { name: string; role?: "user" | "admin" | undefined } & Expiry,
    options: CallOptions = {},
  ): Promise<NewUser> {
    const json = given({ name: user.name, role: user.role, expires: expiry(user) });
    return await this.#context.http.call({ method: "POST", path: pathOf(["users"]), json, signal: options.signal });
  }

  /**
   * Removes a user; one who owns namespaces still is a `conflict`.
   * @operationId deleteUser
   */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.#context.http.call({ method: "DELETE", path: pathOf(["users", name]), signal: options.signal });
  }
}
