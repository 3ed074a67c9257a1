// SPDX-License-Identifier: Apache-2.0
// What a project defines: read here, written by deploys.
import type { Context, ListOptions, NamespaceOptions } from "./context.js";
import { orNull } from "./errors.js";
import type { Resource, ResourceItem } from "./records.js";

export interface VersionOptions extends NamespaceOptions {
  /** Absent for the newest. */
  version?: number | undefined;
}

/** Resources of one kind. */
export class Resources<T = Resource> {
  protected readonly context: Context;
  readonly #folder: string;

  /** @internal */
  constructor(context: Context, folder: string) {
    this.context = context;
    this.#folder = folder;
  }

  /** One of them; null where there is none of that name. */
  async find(name: string, options: VersionOptions = {}): Promise<T | null> {
    return await orNull(this.get(name, options));
  }

  /** One of them, with its definition. */
  async get(name: string, options: VersionOptions = {}): Promise<T> {
    return await this.context.call(options, "GET", [this.#folder, name], { query: { version: options.version } });
  }

  /** All of a namespace, each with its newest version. */
  async list(options: NamespaceOptions & ListOptions = {}): Promise<ResourceItem[]> {
    return await this.context.list(options, [this.#folder]);
  }
}
