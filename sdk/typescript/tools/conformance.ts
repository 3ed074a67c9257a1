// SPDX-License-Identifier: Apache-2.0
// Runs scenarios of sdk/conformance (its README has their form) against the server in MAITENTO_URL: TAP on standard output.
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  CapsuleCommandAbortedError,
  Maitento,
  MaitentoError,
  type EventStream,
  type OutputChunk,
} from "../src/index.js";

type Values = Record<string, unknown>;

interface Step {
  call?: string;
  client?: string;
  join?: string;
  check?: unknown;
  with?: Values;
  on?: string;
  expect?: Values;
  error?: Values;
  save?: string;
  seconds?: unknown;
  until?: Values;
  within?: number;
  background?: string;
  output?: string;
}

interface Theme {
  theme: string;
  namespace?: string;
  needs?: string[];
  setup?: Step[];
  scenarios: { name: string; needs?: string[]; steps: Step[] }[];
  teardown?: Step[];
}

class Failed extends Error {}

// ---- values ----

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Members and item numbers joined by dots; what is absent is null. */
function at(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path === "." ? [] : path.split(".")) {
    found = typeof found === "object" && found !== null ? (found as Values)[name] : null;
  }
  return found ?? null;
}

class Scope {
  readonly saved: Values;

  constructor(saved: Values) {
    this.saved = saved;
  }

  #named(path: string): unknown {
    const [name = "", ...rest] = path.split(".");
    if (!(name in this.saved)) throw new Failed(`nothing was saved as '${name}'`);
    return at(this.saved[name], rest.join(".") || ".");
  }

  value(of: unknown): unknown {
    if (typeof of === "string") {
      const alone = /^\$\{([^}]*)\}$/.exec(of);
      if (alone) return this.#named(alone[1] ?? "");
      return of.replace(/\$\{([^}]*)\}/g, (_, path: string) => String(this.#named(path)));
    }
    if (Array.isArray(of)) return of.map((one) => this.value(one));
    if (!isObject(of) || of instanceof EventsHandle) return of;
    if (typeof of["$repeat"] === "string") return of["$repeat"].repeat(Number(of["times"]));
    return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, this.value(one)]));
  }
}

// ---- matchers ----

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function equal(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => equal(one, b[i]));
  if (isObject(a) && isObject(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...names].every((name) => equal(a[name] ?? null, b[name] ?? null));
  }
  return (a ?? null) === (b ?? null);
}

function lengthOf(value: unknown): number | undefined {
  if (typeof value === "string") return Array.from(value).length;
  return Array.isArray(value) ? value.length : undefined;
}

const MATCHERS: Readonly<Record<string, (value: unknown, wanted: unknown) => boolean>> = {
  $matches: (value, wanted) => typeof value === "string" && new RegExp(String(wanted), "u").test(value),
  $contains: (value, wanted) =>
    typeof value === "string"
      ? value.includes(String(wanted))
      : Array.isArray(value) && value.some((one) => equal(one, wanted)),
  $starts: (value, wanted) => typeof value === "string" && value.startsWith(String(wanted)),
  $ends: (value, wanted) => typeof value === "string" && value.endsWith(String(wanted)),
  $length: (value, wanted) => lengthOf(value) === wanted,
  $atLeast: (value, wanted) => typeof value === "number" && value >= Number(wanted),
  $atMost: (value, wanted) => typeof value === "number" && value <= Number(wanted),
  $has: (value, wanted) => Array.isArray(value) && value.some((one) => unlike(one, wanted as Values) === undefined),
  $not: (value, wanted) => !fits(value, wanted),
};

function fits(value: unknown, matcher: unknown): boolean {
  if (!isObject(matcher)) return equal(value, matcher);
  const entries = Object.entries(matcher);
  if (entries.length === 0 || !entries.every(([name]) => name in MATCHERS)) return equal(value, matcher);
  return entries.every(([name, wanted]) => MATCHERS[name]?.(value, wanted));
}

/** What does not fit; undefined where all does. */
function unlike(value: unknown, expected: Values): string | undefined {
  for (const [path, matcher] of Object.entries(expected)) {
    const found = at(value, path);
    if (!fits(found, matcher)) return `${path} is ${shown(found)}, wanted ${shown(matcher)}`;
  }
  return undefined;
}

// ---- calls ----

/** An open stream among the values. */
class EventsHandle {
  readonly stream: EventStream;
  readonly #events: AsyncIterator<unknown>;

  constructor(stream: EventStream) {
    this.stream = stream;
    this.#events = stream[Symbol.asyncIterator]();
  }

  async next(match: Values): Promise<unknown> {
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => {
        reject(new Failed(`no event has ${shown(match)} within 20 s`));
      }, 20_000).unref(),
    );
    for (;;) {
      const event = await Promise.race([this.#events.next(), late]);
      if (event.done === true) throw new Failed(`the stream ended without an event that has ${shown(match)}`);
      if (Object.entries(match).every(([path, wanted]) => fits(at(event.value, path), wanted))) return event.value;
    }
  }
}

function timeoutIn(args: Values): Values {
  const { timeout, ...rest } = args;
  return timeout === undefined || timeout === null ? rest : { ...rest, timeoutMs: Number(timeout) * 1000 };
}

type Doing = (mt: Maitento, args: Values, hooks: Values) => unknown;

async function inFolder<T>(doing: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    return await doing(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function deploy(mt: Maitento, args: Values): Promise<unknown> {
  const { files, ...options } = args;
  return await inFolder(async (folder) => {
    for (const [path, content] of Object.entries(files as Values)) {
      const full = join(folder, path);
      await mkdir(dirname(full), { recursive: true });
      if (isObject(content) && typeof content["link"] === "string") await symlink(content["link"], full);
      else if (isObject(content)) await writeFile(full, Buffer.from(String(content["base64"]), "base64"));
      else
        await writeFile(
          full,
          Array.isArray(content) ? content.map((line) => `${String(line)}\n`).join("") : String(content),
        );
    }
    return await mt.deploy(folder, options);
  });
}

async function filesCall(mt: Maitento, method: string, args: Values): Promise<unknown> {
  const { vfs, vfsId, run, user, path, text, base64, from, to, target, ...options } = args as Record<string, string>;
  const files =
    vfs !== undefined
      ? mt.vfs.open(vfs)
      : vfsId !== undefined
        ? mt.vfs.openById(vfsId)
        : mt.capsuleRuns.files(run ?? "", user);
  const progress: number[] = [];
  const onProgress = (now: { bytes: number }): void => {
    progress.push(now.bytes);
  };
  switch (method) {
    case "read":
      return Buffer.from(await files.read(path ?? "", options)).toString("base64");
    case "write":
      return await files.write(path ?? "", Buffer.from(base64 ?? "", "base64"), options);
    case "writeText":
      return await files.writeText(path ?? "", text ?? "", options);
    case "move":
      return await files.move(from ?? "", to ?? "", options);
    case "link":
      return await files.link(path ?? "", target ?? "", options);
    case "list":
      return await (path === undefined ? files.list(undefined, options) : files.list(path, options));
    case "upload":
      return await inFolder(async (folder) => {
        await writeFile(join(folder, "file"), text ?? "");
        await files.upload(path ?? "", join(folder, "file"), { onProgress });
        return { progress };
      });
    case "download":
      return await inFolder(async (folder) => {
        await files.download(path ?? "", join(folder, "file"), { onProgress });
        return { text: await readFile(join(folder, "file"), "utf8"), progress };
      });
    default:
      return await (files as unknown as Record<string, (path: unknown, options: unknown) => unknown>)[method]?.(
        path,
        options,
      );
  }
}

async function outputOf(mt: Maitento, args: Values): Promise<unknown> {
  const { run, command, ...options } = args;
  const chunks: OutputChunk[] = [];
  for await (const chunk of mt.capsuleRuns.output(run as string, command as string, options)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks.map((chunk) => chunk.bytes));
  return { text: chunks.map((chunk) => chunk.text).join(""), base64: bytes.toString("base64") };
}

async function screenOf(mt: Maitento, args: Values): Promise<unknown> {
  const pieces: Uint8Array[] = [];
  for await (const piece of mt.shells.output(args["run"] as string, args["shell"] as string)) pieces.push(piece);
  return { text: Buffer.concat(pieces).toString("utf8") };
}

/** Arguments that come first, one after the other; the rest is the options. */
const POSITIONAL: Readonly<Record<string, readonly string[]>> = {
  "namespaces.find": ["name"],
  "namespaces.get": ["name"],
  "namespaces.delete": ["name"],
  "namespaces.setDefault": ["name"],
  "namespaces.listMembers": ["name"],
  "namespaces.addMember": ["name", "user"],
  "namespaces.removeMember": ["name", "user"],
  "keys.delete": ["id"],
  "users.delete": ["name"],
  "vfs.findByName": ["name"],
  "vfs.get": ["name"],
  "vfs.setLimit": ["name", "limit"],
  "vfs.delete": ["name"],
  "secrets.find": ["name"],
  "secrets.get": ["name"],
  "secrets.set": ["name", "value"],
  "secrets.delete": ["name"],
  "providers.get": ["name"],
  "providers.set": ["name"],
  "providers.delete": ["name"],
  "providers.test": ["name", "model"],
  "capsuleRuns.extend": ["run", "maxDuration"],
  "shells.type": ["run", "shell", "data"],
  "shells.resize": ["run", "shell", "columns", "rows"],
};
const OBJECT_FIRST: ReadonlySet<string> = new Set([
  ...["namespaces.create", "vfs.create", "secrets.create", "keys.create", "users.create"],
]);
const BY_NAME = /^(capsules|apps|interactions|agents|jsonSchemas|prompts)\.(get|find|start|run|plan)$/;
const BY_COMMAND = /^capsuleRuns\.(getCommand|waitCommand|cancelCommand)$/;
const BY_RUN = /^(capsuleRuns|appRuns|interactionRuns|shells)\.(?!list$)/;

function positional(name: string): readonly string[] {
  const own = POSITIONAL[name];
  if (own) return own;
  if (BY_NAME.test(name)) return ["name"];
  if (BY_COMMAND.test(name)) return ["run", "command"];
  if (name === "capsuleRuns.findCommand") return ["command"];
  if (/^shells\.(get|close|output|type|resize)$/.test(name)) return ["run", "shell"];
  return BY_RUN.test(name) || name === "shells.list" ? ["run"] : [];
}

const SPECIAL: Readonly<Record<string, Doing>> = {
  deploy: (mt, args) => deploy(mt, args),
  "capsuleRuns.output": (mt, args) => outputOf(mt, args),
  "shells.output": (mt, args) => screenOf(mt, args),
  "events.open": async (mt, args) => new EventsHandle(await mt.events.open(args)),
  "events.next": async (_, args) => await (args["events"] as EventsHandle).next(args["match"] as Values),
  "events.close": async (_, args) => {
    await (args["events"] as EventsHandle).stream.close();
  },
};

async function perform(mt: Maitento, name: string, given: Values, hooks: Values): Promise<unknown> {
  const special = SPECIAL[name];
  if (special) return await special(mt, given, hooks);
  const [group = "", method] = name.split(".");
  if (group === "files" && method !== undefined) return await filesCall(mt, method, given);
  const args: Values = { ...timeoutIn(given), ...hooks };
  if (typeof args["valueBase64"] === "string") {
    args["value"] = Buffer.from(args["valueBase64"], "base64");
    delete args["valueBase64"];
  }
  if (name === "shells.type") args["data"] = args["text"];
  const first = positional(name).map((one) => {
    const value = args[one];
    Reflect.deleteProperty(args, one);
    return value;
  });
  const target: unknown = method === undefined ? mt : at(mt, group);
  const doing = at(target, method ?? group);
  if (typeof doing !== "function") throw new Failed(`the SDK has no ${name}`);
  const { namespace, ...rest } = args;
  const all = OBJECT_FIRST.has(name) ? [rest, { namespace: namespace as string | undefined }] : [...first, args];
  return await (doing as (...all: unknown[]) => unknown).apply(target, all);
}

// ---- steps ----

type Outcome = { value: unknown; seconds: number } | { error: unknown; seconds: number };

function asError(error: unknown): Values {
  if (error instanceof CapsuleCommandAbortedError || error instanceof MaitentoError)
    return { ...(error as object), kind: error.name, message: error.message, diagnostics: [...error.diagnostics] };
  throw error;
}

class Runner {
  readonly #clients = new Map<string, Maitento>();
  readonly #background = new Map<string, Promise<Outcome>>();

  constructor(readonly mt: Maitento) {
    this.#clients.set("", mt);
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) await client.close();
  }

  async run(step: Step, scope: Scope): Promise<void> {
    const args = scope.value(step.with ?? {}) as Values;
    if (step.client !== undefined) {
      this.#make(step, args, scope);
    } else if (step.join !== undefined) {
      const outcome = await this.#background.get(step.join);
      if (!outcome) throw new Failed(`nothing runs as '${step.join}'`);
      this.#judge(step, outcome, scope);
    } else if (step.call === undefined) {
      const wrong = unlike(scope.value(step.check), scope.value(step.expect ?? {}) as Values);
      if (wrong !== undefined) throw new Failed(wrong);
    } else if (step.background !== undefined) {
      this.#background.set(step.background, this.#call(step, args, scope));
    } else if (step.until) {
      await this.#until(step, args, scope);
    } else {
      this.#judge(step, await this.#call(step, args, scope), scope);
    }
  }

  #make(step: Step, args: Values, scope: Scope): void {
    const began = performance.now();
    let outcome: Outcome;
    try {
      const client = new Maitento(args);
      this.#clients.set(step.client ?? "", client);
      outcome = { value: client, seconds: 0 };
    } catch (error) {
      outcome = { error, seconds: (performance.now() - began) / 1000 };
    }
    this.#judge(step, outcome, scope);
  }

  async #call(step: Step, args: Values, scope: Scope): Promise<Outcome> {
    const began = performance.now();
    const seconds = (): number => (performance.now() - began) / 1000;
    const printed = { standard: "", error: "" };
    const onOutput = (chunk: OutputChunk): void => {
      printed[chunk.stream] += chunk.text;
    };
    try {
      const client = this.#clients.get(step.on ?? "");
      if (!client) throw new Failed(`there is no client '${step.on ?? ""}'`);
      const value = await perform(client, step.call ?? "", args, step.output === undefined ? {} : { onOutput });
      if (step.output !== undefined) scope.saved[step.output] = printed;
      return { value, seconds: seconds() };
    } catch (error) {
      return { error, seconds: seconds() };
    }
  }

  async #until(step: Step, args: Values, scope: Scope): Promise<void> {
    const end = performance.now() + (step.within ?? 20) * 1000;
    for (;;) {
      const outcome = await this.#call(step, args, scope);
      const wrong =
        "error" in outcome ? String(outcome.error) : unlike(outcome.value, scope.value(step.until) as Values);
      if (wrong === undefined) {
        this.#judge(step, outcome, scope);
        return;
      }
      if (performance.now() >= end) throw new Failed(`not within ${String(step.within ?? 20)} s: ${wrong}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  #judge(step: Step, outcome: Outcome, scope: Scope): void {
    let wrong: string | undefined;
    if ("error" in outcome) {
      if (!step.error) throw outcome.error;
      wrong = unlike(asError(outcome.error), scope.value(step.error) as Values);
    } else if (step.error) {
      wrong = `it did not fail: ${shown(outcome.value)}`;
    } else {
      wrong = unlike(outcome.value, scope.value(step.expect ?? {}) as Values);
      if (step.save !== undefined) scope.saved[step.save] = outcome.value ?? null;
    }
    if (wrong === undefined && step.seconds !== undefined && !fits(outcome.seconds, step.seconds))
      wrong = `it took ${outcome.seconds.toFixed(3)} s, wanted ${shown(step.seconds)}`;
    if (wrong !== undefined) throw new Failed(wrong);
  }
}

// ---- files ----

let number = 0;
let failures = 0;

function report(name: string, problem?: string, skipped?: string): void {
  number++;
  const tail = skipped === undefined ? "" : ` # SKIP ${skipped}`;
  console.log(`${problem === undefined ? "" : "not "}ok ${String(number)} - ${name}${tail}`);
  if (problem === undefined) return;
  failures++;
  for (const line of problem.split("\n")) console.log(`# ${line}`);
}

function missing(needs: readonly string[] | undefined): string | undefined {
  const found = (needs ?? []).find((one) => !process.env[`MT_${one.toUpperCase()}`]);
  return found === undefined ? undefined : `no ${found}`;
}

async function steps(runner: Runner, list: readonly Step[], scope: Scope, word: string): Promise<string | undefined> {
  for (const [i, step] of list.entries()) {
    try {
      await runner.run(step, scope);
    } catch (error) {
      const what = step.call ?? (step.join === undefined ? (step.client ?? "check") : `join ${step.join}`);
      const said =
        error instanceof Failed
          ? error.message
          : error instanceof Error
            ? `${error.name}: ${error.message}`
            : String(error);
      return `${word} ${String(i + 1)}, ${what}: ${said}`;
    }
  }
  return undefined;
}

async function runFile(path: string): Promise<void> {
  const theme = JSON.parse(await readFile(path, "utf8")) as Theme;
  const unique = randomBytes(4).toString("hex");
  const { MAITENTO_URL: url = null, MT_PROVIDER: provider = null, MT_STRANGER: stranger = null } = process.env;
  const shared = new Scope({ unique, url, provider, stranger });
  const namespace = theme.namespace === undefined ? {} : { namespace: String(shared.value(theme.namespace)) };
  const runner = new Runner(new Maitento(namespace));
  const skip = missing(theme.needs);
  try {
    const broken = skip === undefined ? await steps(runner, theme.setup ?? [], shared, "setup") : undefined;
    for (const { name, needs, steps: own } of theme.scenarios) {
      const without = skip ?? missing(needs);
      const full = `${theme.theme}: ${name}`;
      if (without !== undefined) report(full, undefined, without);
      else report(full, broken ?? (await steps(runner, own, new Scope({ ...shared.saved }), "step")));
    }
    if (skip === undefined) for (const step of theme.teardown ?? []) await steps(runner, [step], shared, "teardown");
  } finally {
    await runner.close();
  }
}

const paths = process.argv.slice(2);
if (paths.length === 0 || paths.some((path) => path.startsWith("-"))) {
  console.error("usage: conformance FILE.json...");
  process.exitCode = 2;
} else {
  for (const path of paths) await runFile(path);
  console.log(`1..${String(number)}`);
  process.exitCode = failures > 0 ? 1 : 0;
}
