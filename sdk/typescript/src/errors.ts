// SPDX-License-Identifier: Apache-2.0
// What can go wrong.
import type { CapsuleRun, Command, Diagnostic, Problem } from "./records.js";

/** What more is known of a failure. */
export interface ErrorDetails {
  /** Status of HTTP; absent where no answer came. */
  status?: number | undefined;
  /** Seconds after which it may be tried again. */
  retryAfter?: number | undefined;
  /** The server's answer, whole. */
  problem?: Problem | undefined;
  /** The member at fault. */
  field?: string | undefined;
  /** What one may do. */
  help?: string | undefined;
  cause?: unknown;
}

/**
 * A call failed. The message says what and why; `code` is for programs.
 *
 * Codes are those of the server (`notFound`, `badField`, `deployFailed`, …: docs/reference/errors.md), and of the client:
 * `unreachable` (no server at the address), `notMaitento` (what answers there is something else), `outcomeUnknown` (sent, and nobody
 * told what became of it) and `closed` (the client was closed).
 */
export class MaitentoError extends Error {
  override readonly name: string = "MaitentoError";
  /** Stable name of the kind of failure. */
  readonly code: string;
  /** Status of HTTP; undefined where no answer came. */
  readonly status: number | undefined;
  /** The member or parameter at fault, `files[2].path`. */
  readonly field: string | undefined;
  /** What one may do. */
  readonly help: string | undefined;
  /** Seconds after which it may be tried again. */
  readonly retryAfter: number | undefined;
  /** Faults of a project, with their places; of a deploy. */
  readonly diagnostics: readonly Diagnostic[];
  /** The server's answer, whole. */
  readonly problem: Problem | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.field = details.field ?? details.problem?.field;
    this.help = details.help ?? details.problem?.help;
    this.retryAfter = details.retryAfter;
    this.diagnostics = details.problem?.diagnostics ?? [];
    this.problem = details.problem;
  }
}

/**
 * The run ended before the command did: it was stopped, ran out of time, or could not start. `code` is `runEnded`.
 */
export class CapsuleCommandAbortedError extends MaitentoError {
  override readonly name = "CapsuleCommandAbortedError";
  /** Why, as a sentence. */
  readonly reason: string;
  /** The command; null where the run had ended before it could be sent. */
  readonly command: Command | null;
  /** The run as it ended; its `failureDetails` say more. Null where it could not be had any more. */
  readonly run: CapsuleRun | null;

  constructor(reason: string, command: Command | null, run: CapsuleRun | null, details: ErrorDetails = {}) {
    super("runEnded", `the command was aborted: ${reason}`, { status: 409, ...details });
    this.reason = reason;
    this.command = command;
    this.run = run;
  }
}

/** The error with `more` at the end of its message. */
export function explained(error: MaitentoError, more: string): MaitentoError {
  const { status, retryAfter, problem, field, help, cause } = error;
  return new MaitentoError(error.code, `${error.message} ${more}`, { status, retryAfter, problem, field, help, cause });
}

/** What `find` methods need: null in place of `notFound`. */
export async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof MaitentoError && error.code === "notFound") return null;
    throw error;
  }
}
