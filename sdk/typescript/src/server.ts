// SPDX-License-Identifier: Apache-2.0
import type { Context, ListOptions } from "./context.js";
import type { CallOptions } from "./http.js";
import { pathOf } from "./paths.js";
import type { Doctor, Health, Image, JsonObject, PruneResult, ServerInfo } from "./records.js";

/** The server itself. */
export class Server {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * What it is and which version. The client asks this once by itself, before all else.
   * @operationId getServer
   */
  async info(options: CallOptions = {}): Promise<ServerInfo> {
    return await this.#context.http.call({ method: "GET", path: pathOf(["server"]), signal: options.signal });
  }

  /**
   * Whether the server answers.
   * @operationId getHealth
   */
  async health(options: CallOptions = {}): Promise<Health> {
    return await this.#context.http.call({ method: "GET", path: pathOf(["health"]), signal: options.signal });
  }

  /**
   * What it found about itself and its host; for administrators.
   * @operationId getDoctor
   */
  async doctor(options: CallOptions = {}): Promise<Doctor> {
    return await this.#context.http.call({ method: "GET", path: pathOf(["doctor"]), signal: options.signal });
  }

  /**
   * The description of its API: OpenAPI 3.1.
   * @operationId getDescription
   */
  async description(options: CallOptions = {}): Promise<JsonObject> {
    return await this.#context.http.call({ method: "GET", path: "/openapi.json", signal: options.signal });
  }
}

/** Images that capsules may run on. */
export class Images {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * The images of this server; made with `mt-image build NAME`.
   * @operationId listImages
   */
  async list(options: ListOptions = {}): Promise<Image[]> {
    return await this.#context.http.list(pathOf(["images"]), options.limit, options.signal);
  }

  /**
   * Removes layers of packages that no run uses; for administrators. A later start installs again.
   * @operationId pruneImages
   */
  async prune(options: CallOptions = {}): Promise<PruneResult> {
    return await this.#context.http.call({ method: "POST", path: pathOf(["images", "prune"]), signal: options.signal });
  }
}
