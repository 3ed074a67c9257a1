// SPDX-License-Identifier: Apache-2.0
import type { Context, ListOptions, NamespaceOptions } from "./context.js";
import { orNull } from "./errors.js";
import type { Secret } from "./records.js";

function sealed(value: string | Uint8Array): { value: string } | { valueBase64: string } {
  if (typeof value === "string") return { value };
  return { valueBase64: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
}

/** Values that capsules mount. They are given, never read back. */
export class Secrets {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /** One secret, without its value; null where there is none of that name. */
  async find(name: string, options: NamespaceOptions = {}): Promise<Secret | null> {
    return await orNull(this.get(name, options));
  }

  /**
   * One secret, without its value.
   * @operationId getSecret
   */
  async get(name: string, options: NamespaceOptions = {}): Promise<Secret> {
    return await this.#context.call(options, "GET", ["secrets", name]);
  }

  /**
   * The secrets of a namespace, without their values.
   * @operationId listSecrets
   */
  async list(options: NamespaceOptions & ListOptions = {}): Promise<Secret[]> {
    return await this.#context.list(options, ["secrets"]);
  }

  /**
   * Makes a secret of 1 to 65,536 bytes; text is kept as UTF-8.
   * @operationId createSecret
   */
  async create(secret: { name: string; value: string | Uint8Array }, options: NamespaceOptions = {}): Promise<Secret> {
    return await this.#context.call(options, "POST", ["secrets"], {
      json: { name: secret.name, ...sealed(secret.value) },
    });
  }

  /**
   * Gives a secret another value. Runs that live keep the one they were started with.
   * @operationId setSecret
   */
  async set(name: string, value: string | Uint8Array, options: NamespaceOptions = {}): Promise<Secret> {
    return await this.#context.call(options, "PUT", ["secrets", name], { json: sealed(value) });
  }

  /**
   * Removes a secret. One that is in use is a `conflict` that says by what, but with `force`.
   * @operationId deleteSecret
   */
  async delete(name: string, options: NamespaceOptions & { force?: boolean | undefined } = {}): Promise<void> {
    await this.#context.call(options, "DELETE", ["secrets", name], {
      query: { force: options.force === true ? true : undefined },
    });
  }
}
