// SPDX-License-Identifier: Apache-2.0
// Interactions with models, and their runs.
import type { Context, ListOptions, NamespaceOptions } from "./context.js";
import { newKey, type CallOptions } from "./http.js";
import { given, idOf, pathOf, type IdOf } from "./paths.js";
import {
  hasEnded,
  type InteractionAttempt,
  type InteractionRun,
  type InteractionRunItem,
  type InteractionRunStatus,
  type InteractionText,
  type JsonValue,
} from "./records.js";
import { Resources } from "./resources.js";
import { startAndWait, type StartOnce } from "./starting.js";
import type { Subject, WaitOptions } from "./waiting.js";

/** How an interaction is started. */
export interface InteractionStart {
  /** By the names that the interaction declares, without regard to case. */
  inputs?: Readonly<Record<string, JsonValue>> | null | undefined;
  /** Of the interaction; absent for the newest. */
  version?: number | null | undefined;
}

export interface InteractionStartOptions extends InteractionStart, StartOnce, NamespaceOptions {}

function interactionSubject(id: string): Subject<InteractionRun> {
  const path = (seconds: number): string => pathOf(["interaction-runs", id], { wait: seconds || undefined });
  return { kind: "interactionRun", id, runId: id, name: `interaction run ${id}`, path, reached: hasEnded };
}

/** What models are asked, and asking them. */
export class Interactions extends Resources {
  /** @internal */
  constructor(context: Context) {
    super(context, "interactions");
  }

  /**
   * Asks the model of the interaction's agent, and returns at once.
   * @operationId startInteractionRun
   */
  async start(name: string, options: InteractionStartOptions = {}): Promise<InteractionRun> {
    const { inputs, version, idempotencyKey } = options;
    const json = given({ inputs, version });
    return await this.context.call(options, "POST", ["interactions", name, "runs"], {
      json,
      key: idempotencyKey ?? newKey(),
    });
  }

  /**
   * Asks the model, waits for its answer and returns the run with its `output`, whatever its status: one that failed has its
   * `failureDetails`. Giving up the wait (`signal`) leaves the run alone.
   */
  async run(name: string, options: InteractionStartOptions = {}): Promise<InteractionRun> {
    const { inputs, version, idempotencyKey: key, signal } = options;
    const json = given({ inputs, version });
    const namespace = await this.context.namespace(options.namespace, signal);
    const parts = ["namespaces", namespace, "interactions", name, "runs"];
    const path = (seconds: number): string => pathOf(parts, { wait: seconds || undefined });
    const started = await this.context.explaining(
      options,
      namespace,
      startAndWait<InteractionRun>(this.context, path, { json, key, signal }, { kind: "interactionRun" }, { signal }),
    );
    return await this.context.waiting.until(interactionSubject(started.record.id), { signal }, started);
  }
}

export interface InteractionRunListOptions extends ListOptions {
  namespace?: string | undefined;
  interaction?: string | undefined;
  status?: InteractionRunStatus | undefined;
  /** Runs whose id ends so. */
  idEnding?: string | undefined;
  /** Only those that you started. */
  mine?: boolean | undefined;
  /** Only those that this run of an app started. */
  parent?: IdOf | undefined;
}

const LIST_LIMIT = 100;
const SILENCE_MS = 15_000;

/** Runs of interactions. */
export class InteractionRuns {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * One run, as it is.
   * @operationId getInteractionRun
   */
  async get(run: IdOf, options: CallOptions = {}): Promise<InteractionRun> {
    return await this.#context.http.call({
      method: "GET",
      path: pathOf(["interaction-runs", idOf(run)]),
      signal: options.signal,
    });
  }

  /**
   * Runs that you may see, the newest first, without inputs and output; 100 at most unless `limit` says otherwise.
   * @operationId listInteractionRuns
   */
  async list(options: InteractionRunListOptions = {}): Promise<InteractionRunItem[]> {
    const { namespace, interaction, status, idEnding, mine, parent, limit = LIST_LIMIT, signal } = options;
    const query = {
      namespace,
      interaction,
      status,
      idEnding,
      mine,
      parent: parent === undefined ? undefined : idOf(parent),
    };
    return await this.#context.http.list(pathOf(["interaction-runs"], query), limit, signal);
  }

  /** The run when it has ended, or as it is after `timeoutMs`. Giving up (`signal`) leaves the run alone. */
  async wait(run: IdOf, options: WaitOptions = {}): Promise<InteractionRun> {
    return await this.#context.waiting.until(interactionSubject(idOf(run)), options);
  }

  /**
   * What the model was asked, what it answered, and what was wrong with that; the first attempt first.
   * @operationId listInteractionAttempts
   */
  async attempts(run: IdOf, options: CallOptions = {}): Promise<InteractionAttempt[]> {
    const path = pathOf(["interaction-runs", idOf(run), "attempts"]);
    return await this.#context.http.list(path, undefined, options.signal);
  }

  /**
   * What the model says, as it comes: ask again with `stream`, `from` (`next` of the answer before) and `wait` (seconds, 60 at most).
   * Nothing is kept of it when the run has ended: the whole answers are in its attempts.
   * @operationId getInteractionText
   */
  async text(
    run: IdOf,
    options: CallOptions & { stream?: number | undefined; from?: number | undefined; wait?: number | undefined } = {},
  ): Promise<InteractionText> {
    const { stream, from, wait, signal } = options;
    const path = pathOf(["interaction-runs", idOf(run), "text"], { stream, from, wait });
    const silenceMs = (wait ?? 0) * 1000 + SILENCE_MS;
    return await this.#context.http.call({ method: "GET", path, pool: "stream", silenceMs, signal });
  }

  /**
   * Ends a run: the model is not asked any more. Repeats change nothing.
   * @operationId cancelInteractionRun
   */
  async cancel(run: IdOf, options: CallOptions = {}): Promise<InteractionRun> {
    const path = pathOf(["interaction-runs", idOf(run), "cancel"]);
    return await this.#context.http.call({ method: "POST", path, harmless: true, signal: options.signal });
  }
}
