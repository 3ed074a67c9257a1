// SPDX-License-Identifier: Apache-2.0
import type { Context, ListOptions, NamespaceOptions } from "./context.js";
import { orNull } from "./errors.js";
import { VfsFiles } from "./files.js";
import type { Vfs } from "./records.js";

/** File systems. */
export class FileSystems {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /** One file system; null where there is none of that name. */
  async findByName(name: string, options: NamespaceOptions = {}): Promise<Vfs | null> {
    return await orNull(this.get(name, options));
  }

  /**
   * One file system, with `usedBytes`.
   * @operationId getVfs
   */
  async get(name: string, options: NamespaceOptions = {}): Promise<Vfs> {
    return await this.#context.call(options, "GET", ["vfs", name]);
  }

  /**
   * The file systems of a namespace.
   * @operationId listVfs
   */
  async list(options: NamespaceOptions & ListOptions = {}): Promise<Vfs[]> {
    return await this.#context.list(options, ["vfs"]);
  }

  /**
   * Makes a file system.
   * @operationId createVfs
   */
  async create(vfs: { name: string }, options: NamespaceOptions = {}): Promise<Vfs> {
    return await this.#context.call(options, "POST", ["vfs"], { json: { name: vfs.name } });
  }

  /**
   * How much it may hold, `"50GiB"`; for administrators.
   * @operationId changeVfs
   */
  async setLimit(name: string, limit: string, options: NamespaceOptions = {}): Promise<Vfs> {
    return await this.#context.call(options, "PATCH", ["vfs", name], { json: { limit }, harmless: true });
  }

  /**
   * Removes a file system with all that is in it. One that is in use is a `conflict` that says by what, but with `force`.
   * @operationId deleteVfs
   */
  async delete(name: string, options: NamespaceOptions & { force?: boolean | undefined } = {}): Promise<void> {
    await this.#context.call(options, "DELETE", ["vfs", name], {
      query: { force: options.force === true ? true : undefined },
    });
  }

  /** Its files. Nothing is asked of the server yet. */
  open(name: string, options: { namespace?: string | undefined } = {}): VfsFiles {
    return new VfsFiles(this.#context, async (signal) => [
      "namespaces",
      await this.#context.namespace(options.namespace, signal),
      "vfs",
      name,
    ]);
  }

  /** The same by the id of a file system, for who has only that. */
  openById(id: string): VfsFiles {
    return new VfsFiles(this.#context, () => Promise.resolve(["vfs", id]));
  }
}
