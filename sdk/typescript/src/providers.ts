// SPDX-License-Identifier: Apache-2.0
import type { Context, ListOptions } from "./context.js";
import { orNull } from "./errors.js";
import type { CallOptions } from "./http.js";
import { given, pathOf } from "./paths.js";
import type { Provider, ProviderTest } from "./records.js";

/** What is said of a provider. Absent: stays as it is. Null: taken away, so that what the server knows by itself holds again. */
export interface ProviderSettings {
  key?: string | null | undefined;
  baseUrl?: string | null | undefined;
  schemaMode?: Provider["schemaMode"] | null | undefined;
  concurrency?: number | null | undefined;
  /** A decimal, `"0.28"`. */
  pricePerMillionTokensIn?: string | null | undefined;
  pricePerMillionTokensOut?: string | null | undefined;
}

/** Who answers for models, and how they are asked. */
export class Providers {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /** One provider; null where the server knows none of that name. */
  async find(name: string, options: CallOptions = {}): Promise<Provider | null> {
    return await orNull(this.get(name, options));
  }

  /**
   * One provider.
   * @operationId getProvider
   */
  async get(name: string, options: CallOptions = {}): Promise<Provider> {
    return await this.#context.http.call({ method: "GET", path: pathOf(["providers", name]), signal: options.signal });
  }

  /**
   * The providers that the server knows, each with what holds for it.
   * @operationId listProviders
   */
  async list(options: ListOptions = {}): Promise<Provider[]> {
    return await this.#context.http.list(pathOf(["providers"]), options.limit, options.signal);
  }

  /**
   * Says how a provider is asked; for administrators. The key is kept sealed, and no answer has it.
   * @operationId setProvider
   */
  async set(name: string, settings: ProviderSettings, options: CallOptions = {}): Promise<Provider> {
    const path = pathOf(["providers", name]);
    return await this.#context.http.call({ method: "PUT", path, json: given(settings), signal: options.signal });
  }

  /**
   * Forgets all that was set of a provider; for administrators.
   * @operationId deleteProvider
   */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.#context.http.call({ method: "DELETE", path: pathOf(["providers", name]), signal: options.signal });
  }

  /**
   * Asks a model of the provider for a word, within 15 seconds; for administrators. It costs a few tokens.
   * @operationId testProvider
   */
  async test(name: string, model: string, options: CallOptions = {}): Promise<ProviderTest> {
    const path = pathOf(["providers", name, "test"]);
    return await this.#context.http.call({ method: "POST", path, json: { model }, signal: options.signal });
  }
}
