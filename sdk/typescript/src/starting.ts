// SPDX-License-Identifier: Apache-2.0
// Starting something once, however often it has to be asked for, and waiting for its end.
import type { Context } from "./context.js";
import { newKey, type Call } from "./http.js";
import type { Mark, Subject, WaitOptions } from "./waiting.js";

/** Of calls that start something. */
export interface StartOnce {
  /**
   * A key that you chose: a call that is repeated with the same one starts nothing twice, and gives what the first one started. Each call
   * has one of its own where it is absent.
   */
  idempotencyKey?: string | undefined;
}

export interface Started<T> {
  record: T;
  mark: Mark;
}

/** What a start would wait by: the kind of what is started, and the run it is in, if that is there already. */
export type Awaits = Pick<Subject<unknown>, "kind"> & { readonly runId?: string };

/**
 * Sends it, and waits in the same request where nothing better is there. The wait is only of the first try: who was cut asks again at
 * once.
 */
export async function startAndWait<T>(
  context: Context,
  path: (seconds: number) => string,
  call: Pick<Call, "json" | "key" | "signal">,
  awaits: Awaits,
  options: WaitOptions,
): Promise<Started<T>> {
  const { http, waiting } = context;
  const key = call.key ?? newKey();
  await http.hello(call.signal);
  const mark = waiting.mark();
  const seconds = waiting.seconds(awaits.kind, awaits.runId ?? "", options);
  const ask = (wait: number, silenceMs: number): Promise<unknown> =>
    http.once({ ...call, key, method: "POST", path: path(wait), pool: wait > 0 ? "wait" : "short", silenceMs });
  try {
    return { record: (await waiting.polling(seconds, (silenceMs) => ask(seconds, silenceMs))) as T, mark };
  } catch (error) {
    if (!http.isAway(error)) throw error;
    return { record: await http.call<T>({ ...call, key, method: "POST", path: path(0) }), mark };
  }
}
