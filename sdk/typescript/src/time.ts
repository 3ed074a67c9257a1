// SPDX-License-Identifier: Apache-2.0
// Waiting that can be given up.
import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds of a clock that is never set. */
export function now(): number {
  return performance.now();
}

/** Waits; rejects with the signal's reason when it is aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** The promise's outcome, or the signal's reason where that is first. What the promise does is not ended by it. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return await promise;
  signal.throwIfAborted();
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A wait before the try after `tries` failed ones: doubled each time, spread so that many do not come at once. */
export function backoff(tries: number, first: number, most: number): number {
  return Math.min(first * 2 ** tries, most) * (0.75 + Math.random() / 2);
}

/** Waits without keeping the process alive for it; returns at once when the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
