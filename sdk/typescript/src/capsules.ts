// SPDX-License-Identifier: Apache-2.0
import type { Context, NamespaceOptions } from "./context.js";
import { maybeDuration, type Duration } from "./duration.js";
import { MaitentoError } from "./errors.js";
import { newKey } from "./http.js";
import { given, pathOf } from "./paths.js";
import { hasEnded, type Capsule, type CapsuleRun, type RunPlan } from "./records.js";
import { Resources } from "./resources.js";
import { startAndWait, type StartOnce } from "./starting.js";
import { sleep } from "./time.js";
import { runSubject } from "./capsule-runs.js";

/** A command that runs as a capsule starts. */
export interface StartupEntry {
  command: string;
  arguments?: readonly string[] | null | undefined;
  runAsUser?: string | null | undefined;
  maxDuration?: Duration | null | undefined;
  /** Whether the next one waits for it; true where it is absent. */
  wait?: boolean | null | undefined;
}

/** How a capsule is started. Lists are added to the capsule's own. */
export interface CapsuleStart {
  /** Of the capsule; absent for the newest. */
  version?: number | null | undefined;
  /** Wins over the capsule's own. */
  environment?: Readonly<Record<string, string>> | null | undefined;
  maxDuration?: Duration | null | undefined;
  startup?: readonly StartupEntry[] | null | undefined;
  vfs?: readonly { readonly vfs: string; readonly mountName: string }[] | null | undefined;
  secrets?: readonly { readonly secret: string; readonly mountName: string }[] | null | undefined;
  labels?: Readonly<Record<string, string>> | null | undefined;
}

export interface CapsuleStartOptions extends CapsuleStart, StartOnce, NamespaceOptions {
  /** Where the server is full (`capacityExceeded`), try until there is room. */
  waitForCapacity?: boolean | undefined;
}

function body(start: CapsuleStart): object {
  const { version, environment, vfs, secrets, labels } = start;
  const startup = start.startup?.map((entry) => given({ ...entry, maxDuration: maybeDuration(entry.maxDuration) }));
  return given({ version, environment, maxDuration: maybeDuration(start.maxDuration), startup, vfs, secrets, labels });
}

const FULL_S = 2;

/** Recipes for throwaway Linux machines, and starting them. */
export class Capsules extends Resources<Capsule> {
  /** @internal */
  constructor(context: Context) {
    super(context, "capsules");
  }

  /**
   * Starts a run and returns at once; commands may be sent to it from then on.
   * @operationId startRun
   */
  async start(name: string, options: CapsuleStartOptions = {}): Promise<CapsuleRun> {
    const json = body(options);
    return await this.#whenThereIsRoom(options, () =>
      this.context.call(options, "POST", ["capsules", name, "runs"], { json, key: options.idempotencyKey ?? newKey() }),
    );
  }

  /**
   * Starts a run, waits for its end and returns it, whatever its status: one that failed has its `failureDetails`. Giving up the wait
   * (`signal`) leaves the run alone.
   */
  async run(name: string, options: CapsuleStartOptions = {}): Promise<CapsuleRun> {
    const { signal, idempotencyKey: key } = options;
    const json = body(options);
    const namespace = await this.context.namespace(options.namespace, signal);
    const parts = ["namespaces", namespace, "capsules", name, "runs"];
    const path = (seconds: number): string => pathOf(parts, { wait: seconds || undefined });
    const { record, mark } = await this.#whenThereIsRoom(options, () =>
      this.context.explaining(
        options,
        namespace,
        startAndWait<CapsuleRun>(this.context, path, { json, key, signal }, { kind: "capsuleRun" }, { signal }),
      ),
    );
    return await this.context.waiting.until(runSubject(record.id, hasEnded), { signal }, { record, mark });
  }

  /** What a start would do, after all its checks. Nothing is started. */
  async plan(name: string, options: CapsuleStart & NamespaceOptions = {}): Promise<RunPlan> {
    const query = { dryRun: true };
    return await this.context.call(options, "POST", ["capsules", name, "runs"], {
      json: body(options),
      query,
      harmless: true,
    });
  }

  async #whenThereIsRoom<T>(options: CapsuleStartOptions, start: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await start();
      } catch (error) {
        if (!(error instanceof MaitentoError) || error.code !== "capacityExceeded" || options.waitForCapacity !== true)
          throw error;
        await sleep((error.retryAfter ?? FULL_S) * 1000, options.signal);
      }
    }
  }
}
