// SPDX-License-Identifier: Apache-2.0
// What the parts of a client share: the connection, who waits, and which namespace is meant.
import { explained, MaitentoError } from "./errors.js";
import type { Call, CallOptions, Http } from "./http.js";
import { pathOf, type Query } from "./paths.js";
import type { Whoami } from "./records.js";
import { orAborted } from "./time.js";
import type { Waiting } from "./waiting.js";

/** Of calls that happen in a namespace. */
export interface NamespaceOptions extends CallOptions {
  /** The namespace; else the client's, MAITENTO_NAMESPACE, that of the settings file, your default on the server. */
  namespace?: string | undefined;
}

/** Of lists. */
export interface ListOptions extends CallOptions {
  /** So many items at most; all where it is absent, unless the method says otherwise. */
  limit?: number | undefined;
}

export class Context {
  readonly http: Http;
  readonly waiting: Waiting;
  #default: Promise<string> | undefined;

  constructor(http: Http, waiting: Waiting) {
    this.http = http;
    this.waiting = waiting;
  }

  /** The namespace that is meant. */
  async namespace(named: string | undefined, signal: AbortSignal | undefined): Promise<string> {
    const own = named ?? this.http.settings.namespace;
    if (own !== undefined) return own;
    this.#default ??= this.#ask().catch((error: unknown) => {
      this.#default = undefined;
      throw error;
    });
    return await orAborted(this.#default, signal);
  }

  async #ask(): Promise<string> {
    const me = await this.http.call<Whoami>({ method: "GET", path: pathOf(["whoami"]) });
    if (me.defaultNamespace !== null) return me.defaultNamespace;
    throw new MaitentoError(
      "badRequest",
      "no namespace is named and you have no default: namespaces.create({ name }) makes one, or give `namespace` or MAITENTO_NAMESPACE",
    );
  }

  /** The default may be another now. */
  forgetDefault(): void {
    this.#default = undefined;
  }

  /** A call under /v1/namespaces/NS. Where something is not found the error says where the namespace came from. */
  async call<T>(
    options: NamespaceOptions,
    method: Call["method"],
    parts: readonly string[],
    more: Partial<Call> & { readonly query?: Query } = {},
  ): Promise<T> {
    const { query, ...rest } = more;
    const namespace = await this.namespace(options.namespace, options.signal);
    const path = pathOf(["namespaces", namespace, ...parts], query);
    return await this.explaining(
      options,
      namespace,
      this.http.call<T>({ signal: options.signal, ...rest, method, path }),
    );
  }

  async list<T>(options: NamespaceOptions & ListOptions, parts: readonly string[]): Promise<T[]> {
    const namespace = await this.namespace(options.namespace, options.signal);
    const path = pathOf(["namespaces", namespace, ...parts]);
    return await this.explaining(options, namespace, this.http.list<T>(path, options.limit, options.signal));
  }

  async explaining<T>(options: NamespaceOptions, namespace: string, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (!(error instanceof MaitentoError) || error.code !== "notFound" || options.namespace !== undefined)
        throw error;
      throw explained(error, `(namespace '${namespace}' is from ${this.http.settings.namespaceSource})`);
    }
  }
}
