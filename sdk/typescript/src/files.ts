// SPDX-License-Identifier: Apache-2.0
// Files of a file system and of a run: text, bytes, streams of any size in constant memory.
import type { IncomingMessage } from "node:http";
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { Writable } from "node:stream";
import type { ReadableStream, WritableStream } from "node:stream/web";
import { MaitentoError } from "./errors.js";
import { Patience, type CallOptions } from "./http.js";
import type { Context, ListOptions } from "./context.js";
import { given, pathOf, type Query } from "./paths.js";
import type { Entry } from "./records.js";
import { now } from "./time.js";

/** How far a transfer is. `total` is undefined where nobody knows it. */
export interface Progress {
  bytes: number;
  total: number | undefined;
}

export interface TransferOptions extends CallOptions {
  /** Called as bytes are sent or come. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

export interface WriteOptions extends TransferOptions {
  /** Bytes of a stream, where they are known. */
  length?: number | undefined;
}

/** What can be written: text (as UTF-8), bytes, or a stream of bytes: a web stream, one of Node's, any async iteration. */
export type Content = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Paths of an `Entry` with `nameEscaped` may be given back as they are. */
export interface EscapedOptions extends CallOptions {
  /** The paths of this call are written in the escaped form of `Entry`. */
  nameEscaped?: boolean | undefined;
}

/** A path, or an entry of a list: which one may also have a name that is no UTF-8. */
export type PathOf = string | Pick<Entry, "path" | "nameEscaped">;

const PIECE = 64 << 10;

/** The value of `path=` in a query: an escaped one is encoded already. */
function pathQuery(path: PathOf): string {
  if (typeof path === "string" || !path.nameEscaped) return encodeText(typeof path === "string" ? path : path.path);
  // "%XX" are bytes as they are; of the rest, text.
  return path.path
    .split(/(%[0-9A-F]{2})/)
    .map((part, i) => (i % 2 === 1 ? part : encodeText(part)))
    .join("");
}

function encodeText(text: string): string {
  if (text.includes("\0")) throw new MaitentoError("badPath", "a path holds no NUL");
  try {
    return encodeURIComponent(text);
  } catch (error) {
    throw new MaitentoError("badPath", `the path ${JSON.stringify(text)} holds half a character`, { cause: error });
  }
}

function isStream(content: unknown): content is AsyncIterable<Uint8Array> {
  return typeof content === "object" && content !== null && Symbol.asyncIterator in content;
}

/** What files of file systems and of runs have in common. Parents of what is written are made as needed. */
export abstract class Files {
  protected readonly context: Context;

  /** @internal */
  constructor(context: Context) {
    this.context = context;
  }

  /** The parts of the address of `what`: "files", "stat", "list", … */
  protected abstract place(what: string, signal: AbortSignal | undefined): Promise<readonly string[]>;

  /** What each call names besides. */
  protected abstract readonly more: Readonly<Record<string, string | undefined>>;

  async #address(
    what: string,
    path: PathOf | undefined,
    query: Query,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const address = pathOf(await this.place(what, signal), { ...this.more, ...query });
    if (path === undefined) return address;
    return `${address}${address.includes("?") ? "&" : "?"}path=${pathQuery(path)}`;
  }

  /**
   * The content, whole, in memory.
   * @operationId getFile getFileById getRunFile
   */
  async read(path: PathOf, options: TransferOptions = {}): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.readStream(path, options)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** The content as text: UTF-8, of which bytes that are none are U+FFFD. A byte order mark is kept. */
  async readText(path: PathOf, options: TransferOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /**
   * The content piece by piece. Where the connection breaks it goes on at the byte where it was, if the file is the same still; else that
   * is an error (`conflict`). Leaving the loop ends the transfer; a server waits 30 s at most for who does not read on, then it is asked
   * again.
   */
  async *readStream(path: PathOf, options: TransferOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { http } = this.context;
    const { signal } = options;
    const patience = new Patience();
    const address = await this.#address("files", path, {}, signal);
    let at = 0;
    let total: number | undefined;
    let tag: string | undefined;
    await http.hello(signal);
    for (;;) {
      const asked = now();
      const before = at;
      try {
        const headers = at > 0 ? { range: `bytes=${String(at)}-` } : {};
        const answer = await http.open({ method: "GET", path: address, headers, pool: "stream", signal });
        if (at > 0 && !continues(answer, tag)) {
          answer.destroy();
          throw new MaitentoError(
            "conflict",
            `'${typeof path === "string" ? path : path.path}' was changed while it was read: read it again`,
          );
        }
        tag = answer.headers.etag;
        if (at === 0) total = lengthOf(answer);
        if (total === 0) options.onProgress?.({ bytes: 0, total });
        for await (const piece of answer as AsyncIterable<Buffer>) {
          at += piece.byteLength;
          options.onProgress?.({ bytes: at, total });
          yield piece;
        }
        return;
      } catch (failure) {
        const error = http.broken(failure, signal);
        // A file without a size or tag cannot be gone on with.
        if (!http.isAway(error) || (at > 0 && (total === undefined || tag === undefined))) throw error;
        if (at === total) return;
        if (at !== before) patience.reset();
        await patience.pause(error, asked, undefined, signal);
      }
    }
  }

  /**
   * The content into a local file, by its path, or into a stream, one of Node's or a web stream, which is ended: the number of bytes. In
   * constant memory: it is read as fast as it is taken. A local file is replaced when all is there, and not touched when it fails.
   */
  async download(
    path: PathOf,
    to: string | Writable | WritableStream<Uint8Array>,
    options: TransferOptions = {},
  ): Promise<number> {
    if (typeof to === "string") return await this.#downloadFile(path, to, options);
    const target = to instanceof Writable ? Writable.toWeb(to) : to;
    const writer = target.getWriter();
    let bytes = 0;
    try {
      for await (const piece of this.readStream(path, options)) {
        await writer.ready;
        await writer.write(piece);
        bytes += piece.byteLength;
      }
      await writer.close();
    } catch (error) {
      await writer.abort(error).catch(() => undefined);
      throw error;
    }
    return bytes;
  }

  async #downloadFile(path: PathOf, to: string, options: TransferOptions): Promise<number> {
    const part = `${to}.${randomUUID()}.part`;
    try {
      const bytes = await this.download(path, createWriteStream(part, { flags: "wx" }), options);
      await rename(part, to);
      return bytes;
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Replaces the file by a local one, in constant memory. */
  async upload(path: PathOf, file: string, options: TransferOptions = {}): Promise<Entry> {
    const local = await open(file);
    try {
      const { size } = await local.stat();
      // One that grows meanwhile is sent at the length that it had.
      const content = local.createReadStream({ autoClose: false, ...(size > 0 ? { end: size - 1 } : {}) });
      return await this.write(path, size > 0 ? content : new Uint8Array(), { ...options, length: size });
    } finally {
      await local.close();
    }
  }

  /**
   * Replaces the file as a whole, or not at all: readers see the old content or the new. Text and bytes are sent again where the server
   * is away for a moment; of a stream that broke off the old content stands (`outcomeUnknown`, or `unreachable`).
   * @operationId putFile putFileById putRunFile
   */
  async write(path: PathOf, content: Content, options: WriteOptions = {}): Promise<Entry> {
    const { signal, onProgress } = options;
    const address = await this.#address("files", path, {}, signal);
    const headers = { "content-type": "application/octet-stream" };
    if (typeof content === "string" || content instanceof Uint8Array) {
      const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
      const total = bytes.byteLength;
      const onSent =
        onProgress &&
        ((sent: number) => {
          onProgress({ bytes: sent, total });
        });
      return await this.context.http.call({ method: "PUT", path: address, headers, body: { bytes }, onSent, signal });
    }
    if (!isStream(content)) throw new TypeError("what is written is text, a Uint8Array or a stream of Uint8Array");
    const total = options.length;
    const onSent =
      onProgress &&
      ((sent: number) => {
        onProgress({ bytes: sent, total });
      });
    return await this.context.http.call({
      method: "PUT",
      path: address,
      headers,
      body: { pieces: () => pieces(content), length: total },
      onSent,
      signal,
    });
  }

  /** Replaces the file by a text, as UTF-8. */
  async writeText(path: PathOf, text: string, options: TransferOptions = {}): Promise<Entry> {
    if (typeof text !== "string") throw new TypeError("writeText takes text: write takes bytes and streams, too");
    return await this.write(path, text, options);
  }

  /**
   * What stands at a path.
   * @operationId getStat getStatById getRunStat
   */
  async stat(path: PathOf, options: CallOptions = {}): Promise<Entry> {
    const { signal } = options;
    return await this.context.http.call({ method: "GET", path: await this.#address("stat", path, {}, signal), signal });
  }

  protected async listAt(path: PathOf, options: ListOptions & { recursive?: boolean | undefined }): Promise<Entry[]> {
    const { signal, limit, recursive } = options;
    const address = await this.#address("list", path, { recursive: recursive === true ? true : undefined }, signal);
    return await this.context.http.list(address, limit, signal);
  }

  /**
   * Makes a folder, with those on the way; no error when it is there. `parents: false`: neither.
   * @operationId makeFolder makeFolderById makeRunFolder
   */
  async mkdir(path: string, options: EscapedOptions & { parents?: boolean | undefined } = {}): Promise<Entry> {
    return await this.#post("mkdir", { path, parents: options.parents ?? true }, options);
  }

  /**
   * Moves or renames. What stands at `to` is replaced only with `replace`.
   * @operationId moveFile moveFileById moveRunFile
   */
  async move(
    from: string,
    to: string,
    options: EscapedOptions & { replace?: boolean | undefined } = {},
  ): Promise<Entry> {
    return await this.#post("move", { from, to, replace: options.replace }, options);
  }

  /**
   * Makes a symbolic link at `path` that leads to `target`.
   * @operationId makeLink makeLinkById makeRunLink
   */
  async link(path: string, target: string, options: EscapedOptions = {}): Promise<Entry> {
    return await this.#post("link", { path, target }, options);
  }

  async #post(what: string, body: object, options: EscapedOptions): Promise<Entry> {
    const { signal, nameEscaped } = options;
    const path = pathOf(await this.place(what, signal));
    const json = given({ ...body, ...this.more, nameEscaped });
    return await this.context.http.call({ method: "POST", path, json, signal });
  }

  /**
   * Removes a file, a link, or an empty folder; with `recursive` a folder with all that is in it.
   * @operationId deleteFile deleteFileById deleteRunFile
   */
  async delete(path: PathOf, options: CallOptions & { recursive?: boolean | undefined } = {}): Promise<void> {
    const { signal, recursive } = options;
    const address = await this.#address("files", path, { recursive: recursive === true ? true : undefined }, signal);
    await this.context.http.call({ method: "DELETE", path: address, signal });
  }
}

/** The files of one file system. Paths begin with "/". */
export class VfsFiles extends Files {
  readonly #place: (signal: AbortSignal | undefined) => Promise<readonly string[]>;
  protected override readonly more = {};

  /** @internal */
  constructor(context: Context, place: (signal: AbortSignal | undefined) => Promise<readonly string[]>) {
    super(context);
    this.#place = place;
  }

  protected override async place(what: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    return [...(await this.#place(signal)), what];
  }

  /**
   * What is in a folder, in the order of the names' bytes; `recursive`: with all folders below it, links not followed.
   * @operationId listFiles listFilesById
   */
  async list(path: PathOf = "/", options: ListOptions & { recursive?: boolean | undefined } = {}): Promise<Entry[]> {
    return await this.listAt(path, options);
  }
}

/** The files of a run that lives, as one of its users. Paths that do not begin with "/" begin at the user's home. */
export class RunFiles extends Files {
  readonly #runId: string;
  protected override readonly more: { user: string | undefined };

  /** @internal */
  constructor(context: Context, runId: string, user: string | undefined) {
    super(context);
    this.#runId = runId;
    this.more = { user };
  }

  protected override place(what: string): Promise<readonly string[]> {
    return Promise.resolve(["capsule-runs", this.#runId, "files", ...(what === "files" ? [] : [what])]);
  }

  /**
   * What is in a folder, in the order of the names' bytes; `recursive`: with all folders below it, links not followed.
   * @operationId listRunFiles
   */
  async list(path: PathOf = ".", options: ListOptions & { recursive?: boolean | undefined } = {}): Promise<Entry[]> {
    return await this.listAt(path, options);
  }
}

function lengthOf(answer: IncomingMessage): number | undefined {
  const length = answer.headers["content-length"];
  return length === undefined ? undefined : Number(length);
}

function continues(answer: IncomingMessage, tag: string | undefined): boolean {
  return answer.statusCode === 206 && tag !== undefined && answer.headers.etag === tag;
}

/** The pieces of a caller's stream, as bytes of a size that suits the wire. */
async function* pieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of content) {
    const bytes: unknown = piece;
    if (!(bytes instanceof Uint8Array))
      throw new TypeError("a stream that is written gives Uint8Array: text is encoded first");
    if (bytes.byteLength <= 4 * PIECE) yield bytes;
    else for (let at = 0; at < bytes.byteLength; at += PIECE) yield bytes.subarray(at, at + PIECE);
  }
}
