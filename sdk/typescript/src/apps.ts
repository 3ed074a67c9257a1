// SPDX-License-Identifier: Apache-2.0
// Apps and their runs.
import type { Context, ListOptions, NamespaceOptions } from "./context.js";
import { newKey, type CallOptions } from "./http.js";
import { given, idOf, pathOf, type IdOf } from "./paths.js";
import {
  hasEnded,
  type App,
  type AppRun,
  type AppRunItem,
  type AppRunResult,
  type AppRunStatus,
  type ConsoleLine,
  type ConsolePart,
  type JsonValue,
  type LogLine,
  type LogPart,
} from "./records.js";
import { Resources } from "./resources.js";
import { startAndWait, type StartOnce } from "./starting.js";
import { now, sleep } from "./time.js";
import type { Subject, WaitOptions } from "./waiting.js";

/** How an app is started. */
export interface AppStart {
  /**
   * By names of `main`'s parameters, without regard to case. A text is converted to the parameter's type; numbers, booleans, objects and
   * lists are taken as they are where the parameter is of their type.
   */
  inputs?: Readonly<Record<string, JsonValue>> | null | undefined;
  /** Of the app; absent for the newest. */
  version?: number | null | undefined;
}

export interface AppStartOptions extends AppStart, StartOnce, NamespaceOptions {}

export interface AppRunOptions extends AppStartOptions {
  /** Called with each line that it prints, as it comes. What it throws ends the wait; the app goes on. */
  onConsole?: ((line: ConsoleLine) => void) | undefined;
}

function appSubject(id: string): Subject<AppRun> {
  const path = (seconds: number): string => pathOf(["app-runs", id], { wait: seconds || undefined });
  return { kind: "appRun", id, runId: id, name: `app run ${id}`, path, reached: hasEnded };
}

/** Programs that run on the server, and starting them. */
export class Apps extends Resources<App> {
  /** @internal */
  constructor(context: Context) {
    super(context, "apps");
  }

  /**
   * Starts an app and returns at once.
   * @operationId startAppRun
   */
  async start(name: string, options: AppStartOptions = {}): Promise<AppRun> {
    const { inputs, version, idempotencyKey } = options;
    const json = given({ inputs, version });
    return await this.context.call(options, "POST", ["apps", name, "runs"], { json, key: idempotencyKey ?? newKey() });
  }

  /**
   * Starts an app, waits for its end and returns the run with what it printed and returned, whatever its status: one that failed has its
   * `failureDetails`. Giving up the wait (`signal`) leaves the run alone.
   */
  async run(name: string, options: AppRunOptions = {}): Promise<AppRunResult> {
    const { inputs, version, idempotencyKey: key, signal, onConsole } = options;
    const json = given({ inputs, version });
    const namespace = await this.context.namespace(options.namespace, signal);
    const path = (seconds: number): string =>
      pathOf(["namespaces", namespace, "apps", name, "runs"], { wait: seconds || undefined });
    const wait = { signal, timeoutMs: onConsole ? 0 : undefined };
    const { record, mark } = await this.context.explaining(
      options,
      namespace,
      startAndWait<AppRun>(this.context, path, { json, key, signal }, { kind: "appRun" }, wait),
    );
    if (onConsole)
      for await (const line of new AppRuns(this.context).followConsole(record.id, { signal })) onConsole(line);
    await this.context.waiting.until(appSubject(record.id), { signal }, { record, mark });
    const whole = pathOf(["app-runs", record.id], { console: true });
    return await this.context.http.call({ method: "GET", path: whole, signal });
  }
}

export interface AppRunListOptions extends ListOptions {
  namespace?: string | undefined;
  app?: string | undefined;
  status?: AppRunStatus | undefined;
  /** Runs whose id ends so. */
  idEnding?: string | undefined;
  /** Only those that you started. */
  mine?: boolean | undefined;
  /** Only those that this run of an app started. */
  parent?: IdOf | undefined;
}

export interface LinesOptions extends CallOptions {
  /** Number of the last line that is known; 0 for all that are kept. */
  after?: number | undefined;
  /** Wait for all that come until the run has ended. */
  follow?: boolean | undefined;
}

const LIST_LIMIT = 100;
const LINES_WAIT_S = 20;
const LINES_SILENCE_MS = 35_000;

/** Runs of apps. */
export class AppRuns {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * One run; with `console` also what it printed, as far as that is kept.
   * @operationId getAppRun
   */
  async get(run: IdOf, options: CallOptions & { console?: boolean | undefined } = {}): Promise<AppRun> {
    const path = pathOf(["app-runs", idOf(run)], { console: options.console === true ? true : undefined });
    return await this.#context.http.call({ method: "GET", path, signal: options.signal });
  }

  /**
   * Runs that you may see, the newest first, without inputs and outputs; 100 at most unless `limit` says otherwise.
   * @operationId listAppRuns
   */
  async list(options: AppRunListOptions = {}): Promise<AppRunItem[]> {
    const { namespace, app, status, idEnding, mine, parent, limit = LIST_LIMIT, signal } = options;
    const query = { namespace, app, status, idEnding, mine, parent: parent === undefined ? undefined : idOf(parent) };
    return await this.#context.http.list(pathOf(["app-runs"], query), limit, signal);
  }

  /** The run when it has ended, or as it is after `timeoutMs`. Giving up (`signal`) leaves the run alone. */
  async wait(run: IdOf, options: WaitOptions = {}): Promise<AppRun> {
    return await this.#context.waiting.until(appSubject(idOf(run)), options);
  }

  /**
   * What it printed: the lines beyond `after`, 10,000 at most; with `follow` when it has ended.
   * @operationId getAppConsole
   */
  async console(run: IdOf, options: LinesOptions = {}): Promise<ConsoleLine[]> {
    return await all(this.#lines<ConsoleLine>(idOf(run), "console", options));
  }

  /** What it prints, line by line as it comes, until it has ended. */
  followConsole(run: IdOf, options: Omit<LinesOptions, "follow"> = {}): AsyncGenerator<ConsoleLine, void, undefined> {
    return this.#lines<ConsoleLine>(idOf(run), "console", { ...options, follow: true });
  }

  /**
   * What it wrote to its log: the lines beyond `after`; with `follow` when it has ended.
   * @operationId getAppLog
   */
  async log(run: IdOf, options: LinesOptions = {}): Promise<LogLine[]> {
    return await all(this.#lines<LogLine>(idOf(run), "log", options));
  }

  /** What it writes to its log, line by line as it comes, until it has ended. */
  followLog(run: IdOf, options: Omit<LinesOptions, "follow"> = {}): AsyncGenerator<LogLine, void, undefined> {
    return this.#lines<LogLine>(idOf(run), "log", { ...options, follow: true });
  }

  async *#lines<T extends ConsoleLine | LogLine>(
    id: string,
    what: "console" | "log",
    options: LinesOptions,
  ): AsyncGenerator<T, void, undefined> {
    const { signal, follow } = options;
    const wait = follow === true ? LINES_WAIT_S : undefined;
    for (let after = options.after ?? 0; ;) {
      const asked = now();
      const path = pathOf(["app-runs", id, what], { after, limit: 1000, wait });
      const pool = follow === true ? "stream" : "short";
      const part = await this.#context.http.call<ConsolePart | LogPart>({
        method: "GET",
        path,
        pool,
        silenceMs: LINES_SILENCE_MS,
        signal,
      });
      yield* part.items as T[];
      after = part.next;
      if (part.ended || (part.items.length === 0 && follow !== true)) return;
      if (part.items.length === 0 && now() - asked < 200) await sleep(1_000, signal);
    }
  }

  /**
   * Ends a run, whatever its state, and what it started that still lives. Repeats change nothing.
   * @operationId cancelAppRun
   */
  async cancel(run: IdOf, options: CallOptions = {}): Promise<AppRun> {
    const path = pathOf(["app-runs", idOf(run), "cancel"]);
    return await this.#context.http.call({ method: "POST", path, harmless: true, signal: options.signal });
  }

  /**
   * Starts the app once more, the same version with the same inputs: a new run, whose `rerunOf` says of which.
   * @operationId rerunApp
   */
  async rerun(run: IdOf, options: CallOptions & StartOnce = {}): Promise<AppRun> {
    const path = pathOf(["app-runs", idOf(run), "rerun"]);
    const key = options.idempotencyKey ?? newKey();
    return await this.#context.http.call({ method: "POST", path, key, signal: options.signal });
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
