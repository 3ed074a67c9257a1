// SPDX-License-Identifier: Apache-2.0
// The files of a project in a folder, by the same rules as `mt deploy`.
import { constants } from "node:fs";
import { lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { MaitentoError } from "./errors.js";

export interface ProjectFile {
  path: string;
  content?: string;
  contentBase64?: string;
}

/** Told of each file that is left out, and why. */
export type Skipped = (path: string, why: string) => void;

// Tools and connectors are sent, too, so that the server can say that it does not take them.
const FOLDERS = ["agents", "apps", "capsules", "connectors", "interactions", "json", "prompts", "tools"];
const ENDS = [".mtr", ".mtc", ".json", ".md"];
const FILE_MAX = 8 << 20;
const PROJECT_MAX = 64 << 20;
const DEPTH_MAX = 256;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

type Kind = "file" | "folder" | "link" | "other" | "none";

async function kindOf(path: string): Promise<Kind> {
  try {
    const found = await lstat(path);
    if (found.isSymbolicLink()) return "link";
    if (found.isDirectory()) return "folder";
    return found.isFile() ? "file" : "other";
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return "none";
    throw new MaitentoError("badRequest", `cannot look at '${path}': ${(error as Error).message}`, { cause: error });
  }
}

function asText(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

class Project {
  readonly files: ProjectFile[] = [];
  readonly #folder: string;
  readonly #skipped: Skipped;
  readonly #signal: AbortSignal | undefined;
  #bytes = 0;

  constructor(folder: string, skipped: Skipped, signal: AbortSignal | undefined) {
    this.#folder = folder;
    this.#skipped = skipped;
    this.#signal = signal;
  }

  async walk(path: string, depth: number): Promise<void> {
    this.#signal?.throwIfAborted();
    if (depth > DEPTH_MAX)
      throw new MaitentoError(
        "badPath",
        `'${path.slice(0, 100)}…' is nested more than ${String(DEPTH_MAX)} folders deep`,
      );
    const names = await readdir(join(this.#folder, path), { encoding: "buffer" });
    for (const raw of names.sort((a, b) => Buffer.compare(a, b))) {
      const name = asText(raw);
      if (name === undefined) this.#skipped(`${path}/${raw.toString("latin1")}`, "its name is no UTF-8");
      else if (!name.startsWith(".") && !name.endsWith("~")) await this.#entry(`${path}/${name}`, name, depth);
    }
  }

  async #entry(path: string, name: string, depth: number): Promise<void> {
    const kind = await kindOf(join(this.#folder, path));
    if (kind === "folder") await this.walk(path, depth + 1);
    else if (kind === "file" && ENDS.includes(/\.[^.]*$/.exec(name)?.[0] ?? "")) await this.#add(path);
    else if (kind === "file") this.#skipped(path, `no file of a project (${ENDS.join(" ")})`);
    else if (kind !== "none") this.#skipped(path, kind === "link" ? "a link" : "no regular file");
  }

  async #add(path: string): Promise<void> {
    const bytes = await this.#read(path);
    this.#bytes += bytes.byteLength;
    if (this.#bytes > PROJECT_MAX)
      throw new MaitentoError("tooLarge", `the project is larger than ${String(PROJECT_MAX >> 20)} MiB`);
    const content = asText(bytes);
    this.files.push(content === undefined ? { path, contentBase64: bytes.toString("base64") } : { path, content });
  }

  /** What was a file a moment ago may be a link or a pipe now: neither is followed or waited for. */
  async #read(path: string): Promise<Buffer> {
    const full = join(this.#folder, path);
    const file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size } = await file.stat().then((found) => {
        if (!found.isFile()) throw new MaitentoError("badRequest", `'${full}' is no regular file`);
        return found;
      });
      const bytes = size <= FILE_MAX ? await file.readFile() : undefined;
      if (bytes && bytes.byteLength <= FILE_MAX) return bytes;
      throw new MaitentoError("tooLarge", `'${full}' is larger than ${String(FILE_MAX >> 20)} MiB`);
    } finally {
      await file.close();
    }
  }
}

/**
 * The files that a deploy sends: `.mtr .mtc .json .md` below agents/ apps/ capsules/ interactions/ json/ prompts/ (and tools/ connectors/),
 * but for hidden ones and backups (`~`). Links and other files are left out, and `skipped` is told.
 */
export async function projectFiles(
  folder: string,
  skipped: Skipped = () => undefined,
  signal?: AbortSignal,
): Promise<ProjectFile[]> {
  const top = join(folder, "."); // a link to the folder itself is followed, as by mt
  const kinds = await Promise.all(FOLDERS.map((name) => kindOf(join(folder, name))));
  const found = FOLDERS.filter((_, i) => kinds[i] === "folder");
  FOLDERS.forEach((name, i) => {
    if (kinds[i] !== "folder" && kinds[i] !== "none") skipped(name, kinds[i] === "link" ? "a link" : "no folder");
  });
  if (found.length === 0) throw await noProject(folder);
  const project = new Project(top, skipped, signal);
  for (const name of found) await project.walk(name, 1);
  return project.files;
}

async function noProject(folder: string): Promise<MaitentoError> {
  const top = await kindOf(join(folder, "."));
  if (top === "none")
    return new MaitentoError("notFound", `there is no folder '${folder}': deploy takes the folder of a project`);
  if (top !== "folder" && top !== "link")
    return new MaitentoError("badRequest", `'${folder}' is no folder: deploy takes the folder of a project`);
  const inner = await Promise.all(FOLDERS.map((name) => kindOf(join(folder, "maitento", name))));
  const hint = inner.some((kind) => kind !== "none")
    ? `did you mean '${join(folder, "maitento")}'?`
    : "it has none of agents, apps, capsules, interactions, json, prompts";
  return new MaitentoError("badRequest", `'${folder}' is no project folder: ${hint}`);
}
