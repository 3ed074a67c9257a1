// SPDX-License-Identifier: Apache-2.0
import { MaitentoError } from "./errors.js";

/** A length of time: `"hh:mm:ss"` or `"d.hh:mm:ss"`, or its parts (a `Temporal.Duration` has them, too). Whole seconds. */
export type Duration =
  | string
  | {
      readonly days?: number | undefined;
      readonly hours?: number | undefined;
      readonly minutes?: number | undefined;
      readonly seconds?: number | undefined;
    };

function two(n: number): string {
  return String(n).padStart(2, "0");
}

/** A duration as the server takes it. A text is passed on as it is: the server says what is wrong with it. */
export function duration(value: Duration): string {
  if (typeof value === "string") return value;
  const { days = 0, hours = 0, minutes = 0, seconds = 0 } = value;
  const total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  if (!Number.isSafeInteger(total) || total < 0)
    throw new MaitentoError(
      "badRequest",
      'a duration is "hh:mm:ss", or { hours, minutes, seconds } of whole seconds that are not negative',
    );
  const d = Math.floor(total / 86400);
  return `${d > 0 ? `${String(d)}.` : ""}${two(Math.floor(total / 3600) % 24)}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
}

/** The same where one may be absent. */
export function maybeDuration(value: Duration | null | undefined): string | null | undefined {
  return value === undefined || value === null ? value : duration(value);
}
