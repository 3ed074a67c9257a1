// SPDX-License-Identifier: Apache-2.0
// Runs of capsules, and the commands in them.
import type { Context, ListOptions } from "./context.js";
import { duration, maybeDuration, type Duration } from "./duration.js";
import { CapsuleCommandAbortedError, MaitentoError, orNull } from "./errors.js";
import { RunFiles } from "./files.js";
import { newKey, type CallOptions } from "./http.js";
import { LiveOutput, output, type OutputChunk, type OutputOptions } from "./output.js";
import { given, idOf, pathOf, type IdOf } from "./paths.js";
import {
  hasEnded,
  type CapsuleRun,
  type CapsuleRunStatus,
  type Command,
  type CommandItem,
  type CommandStatus,
  type StoryEntry,
} from "./records.js";
import { startAndWait, type StartOnce, type Started } from "./starting.js";
import type { Subject, WaitOptions } from "./waiting.js";

/** A command, and what it runs with. */
export interface CommandRequest {
  /** Shell text; `arguments` are appended to it. */
  command: string;
  /** Each is one word, and reaches the program byte for byte. */
  arguments?: readonly string[] | null | undefined;
  /** `maitento` where it is absent; `root`, or a user of the capsule. */
  runAsUser?: string | null | undefined;
  /** Counted from its own start, not while it waits for its turn; none of its own where it is absent. */
  maxDuration?: Duration | null | undefined;
  /** The next command does not wait for this one. */
  async?: boolean | null | undefined;
  /** Absolute; the user's home where it is absent. */
  workingDirectory?: string | null | undefined;
  environment?: Readonly<Record<string, string>> | null | undefined;
  /** What it reads, up to 8 MiB; its input is at its end at once where this is absent. */
  stdin?: string | null | undefined;
}

export interface ExecOptions extends CommandRequest, StartOnce, CallOptions {}

export interface ExecAndWaitOptions extends ExecOptions {
  /** Called with each piece of what it prints, both outputs, as it comes. What it throws ends the wait; the command goes on. */
  onOutput?: ((chunk: OutputChunk) => void) | undefined;
}

export interface RunListOptions extends ListOptions {
  namespace?: string | undefined;
  capsule?: string | undefined;
  status?: CapsuleRunStatus | undefined;
  /** Runs whose id ends so. */
  idEnding?: string | undefined;
  /** Only those that you started. */
  mine?: boolean | undefined;
}

export interface CommandListOptions extends ListOptions {
  status?: CommandStatus | undefined;
  /** Commands whose id ends so. */
  idEnding?: string | undefined;
}

const LIST_LIMIT = 100;
const LAST_MS = 10_000;

function requestOf(request: CommandRequest): object {
  const { command, runAsUser, async, workingDirectory, environment, stdin } = request;
  const words: unknown = request.arguments;
  if (words !== undefined && words !== null && !Array.isArray(words))
    throw new TypeError('`arguments` is a list, one word each: ["-l", "/tmp"], not a text');
  const maxDuration = maybeDuration(request.maxDuration);
  return given({ command, arguments: words, runAsUser, maxDuration, async, workingDirectory, environment, stdin });
}

/** @internal */
export function runSubject(id: string, reached: (run: CapsuleRun) => boolean, until?: "ready"): Subject<CapsuleRun> {
  const path = (seconds: number): string => pathOf(["capsule-runs", id], seconds > 0 ? { wait: seconds, until } : {});
  return { kind: "capsuleRun", id, runId: id, name: `run ${id}`, path, reached };
}

function commandSubject(runId: string, id: string): Subject<Command> {
  const path = (seconds: number): string =>
    pathOf(["capsule-runs", runId, "commands", id], { wait: seconds || undefined });
  return { kind: "command", id, runId, name: `command ${id}`, path, reached: hasEnded };
}

/** Runs of capsules. A run or command is named by its id, or by a record that has it. */
export class CapsuleRuns {
  readonly #context: Context;

  /** @internal */
  constructor(context: Context) {
    this.#context = context;
  }

  // ---- runs ----

  /**
   * One run, with its `limits`.
   * @operationId getRun
   */
  async get(run: IdOf, options: CallOptions = {}): Promise<CapsuleRun> {
    return await this.#get(pathOf(["capsule-runs", idOf(run)]), options);
  }

  async #get<T>(path: string, options: CallOptions): Promise<T> {
    return await this.#context.http.call({ method: "GET", path, signal: options.signal });
  }

  /**
   * Runs that you may see, the newest first; 100 at most unless `limit` says otherwise.
   * @operationId listRuns
   */
  async list(options: RunListOptions = {}): Promise<CapsuleRun[]> {
    const { namespace, capsule, status, idEnding, mine, limit = LIST_LIMIT, signal } = options;
    const path = pathOf(["capsule-runs"], { namespace, capsule, status, idEnding, mine });
    return await this.#context.http.list(path, limit, signal);
  }

  /** What happened in a run, the oldest first: the entries with a number above `after`. */
  async story(run: IdOf, options: CallOptions & { after?: number | undefined } = {}): Promise<StoryEntry[]> {
    const entries: StoryEntry[] = [];
    for (let after = options.after ?? 0; ;) {
      const path = pathOf(["capsule-runs", idOf(run)], { story: true, storyAfter: after });
      const { story = [] } = await this.#get<CapsuleRun>(path, options);
      const last = story.at(-1);
      if (!last) return entries;
      entries.push(...story);
      after = last.number;
    }
  }

  /** The run when it has ended, or as it is after `timeoutMs`. Giving up (`signal`) leaves the run alone. */
  async wait(run: IdOf, options: WaitOptions = {}): Promise<CapsuleRun> {
    return await this.#context.waiting.until(runSubject(idOf(run), hasEnded), options);
  }

  /** The run when it is ready for commands, or has ended before; or as it is after `timeoutMs`. */
  async waitUntilReady(run: IdOf, options: WaitOptions = {}): Promise<CapsuleRun> {
    const ready = (found: CapsuleRun): boolean => found.status === "Running" || hasEnded(found);
    return await this.#context.waiting.until(runSubject(idOf(run), ready, "ready"), options);
  }

  /**
   * Stops a run, whatever it does; once it has ended this changes nothing. Its end comes a moment later: `wait` has it.
   * @operationId terminateRun
   */
  async terminate(run: IdOf, options: CallOptions = {}): Promise<CapsuleRun> {
    return await this.#post(["capsule-runs", idOf(run), "terminate"], undefined, options);
  }

  /**
   * Gives a run another longest life, counted from its start as ever.
   * @operationId extendRun
   */
  async extend(run: IdOf, maxDuration: Duration, options: CallOptions = {}): Promise<CapsuleRun> {
    return await this.#post(["capsule-runs", idOf(run), "extend"], { maxDuration: duration(maxDuration) }, options);
  }

  async #post<T>(parts: readonly string[], json: object | undefined, options: CallOptions): Promise<T> {
    return await this.#context.http.call({
      method: "POST",
      path: pathOf(parts),
      json,
      harmless: true,
      signal: options.signal,
    });
  }

  /** The files of a run that lives, with the rights of one of its users (`maitento`). Nothing is asked of the server yet. */
  files(run: IdOf, user?: string): RunFiles {
    return new RunFiles(this.#context, idOf(run), user);
  }

  // ---- commands ----

  /**
   * Sends a command and returns at once: `getCommand` and `waitCommand` tell how it went.
   * @operationId sendCommand
   */
  async exec(run: IdOf, request: ExecOptions): Promise<Command> {
    const path = pathOf(["capsule-runs", idOf(run), "commands"]);
    const key = request.idempotencyKey ?? newKey();
    return await this.#context.http.call({
      method: "POST",
      path,
      json: requestOf(request),
      key,
      signal: request.signal,
    });
  }

  /**
   * Sends a command and waits for its end. One that fails is a result, with its `exitCode`; only where the run ends first this throws
   * `CapsuleCommandAbortedError`. Giving up the wait (`signal`) leaves the command alone.
   */
  async execAndWait(run: IdOf, request: ExecAndWaitOptions): Promise<Command> {
    const runId = idOf(run);
    const { signal, onOutput } = request;
    const sent = await this.#send(runId, request);
    const subject = commandSubject(runId, sent.record.id);
    const live = onOutput && new LiveOutput(this.#context, sent.record, onOutput, signal);
    try {
      const wait = this.#context.waiting.until(subject, { signal }, sent);
      const ended = await (live ? live.beside(wait) : wait);
      await live?.finish();
      return await this.#unlessAborted(ended, signal);
    } finally {
      live?.stop();
    }
  }

  async #send(runId: string, request: ExecAndWaitOptions): Promise<Started<Command>> {
    const { signal, idempotencyKey: key } = request;
    const json = requestOf(request);
    // Whoever wants its output as it comes needs its id first.
    const most = request.onOutput ? 0 : undefined;
    const path = (seconds: number): string =>
      pathOf(["capsule-runs", runId, "commands"], { wait: seconds || undefined });
    try {
      return await startAndWait(
        this.#context,
        path,
        { json, key, signal },
        { kind: "command", runId },
        { signal, timeoutMs: most },
      );
    } catch (error) {
      if (!(error instanceof MaitentoError) || error.code !== "runEnded") throw error;
      const { problem } = error;
      throw new CapsuleCommandAbortedError(error.message, null, await this.#last(runId, signal), {
        problem,
        cause: error,
      });
    }
  }

  async #unlessAborted(command: Command, signal: AbortSignal | undefined): Promise<Command> {
    if (command.status !== "Aborted") return command;
    throw new CapsuleCommandAbortedError(command.failureDetails, command, await this.#last(command.runId, signal));
  }

  /** The run as it ended: its commands are told a moment before. */
  async #last(runId: string, signal: AbortSignal | undefined): Promise<CapsuleRun | null> {
    try {
      return await this.wait(runId, { timeoutMs: LAST_MS, signal });
    } catch (error) {
      if (error instanceof MaitentoError) return null; // what is known is worth more than what is not
      throw error;
    }
  }

  /**
   * A command as it is now, with what it printed when it has ended.
   * @operationId getCommand
   */
  async getCommand(run: IdOf, command: IdOf, options: CallOptions = {}): Promise<Command> {
    return await this.#get(pathOf(["capsule-runs", idOf(run), "commands", idOf(command)]), options);
  }

  /**
   * A command by its whole id alone; null where there is none that you may see.
   * @operationId getCommandById
   */
  async findCommand(command: IdOf, options: CallOptions = {}): Promise<Command | null> {
    return await orNull(this.#get<Command>(pathOf(["commands", idOf(command)]), options));
  }

  /** The command when it has ended, or as it is after `timeoutMs`. Where the run ended first: `CapsuleCommandAbortedError`. */
  async waitCommand(run: IdOf, command: IdOf, options: WaitOptions = {}): Promise<Command> {
    const found = await this.#context.waiting.until(commandSubject(idOf(run), idOf(command)), options);
    return await this.#unlessAborted(found, options.signal);
  }

  /**
   * The commands of a run, the oldest first, without what they printed: `getCommand` has that.
   * @operationId listCommands
   */
  async listCommands(run: IdOf, options: CommandListOptions = {}): Promise<CommandItem[]> {
    const { status, idEnding, limit, signal } = options;
    return await this.#context.http.list(
      pathOf(["capsule-runs", idOf(run), "commands"], { status, idEnding }),
      limit,
      signal,
    );
  }

  /**
   * Ends a command, or takes it from the queue. Repeats change nothing.
   * @operationId cancelCommand
   */
  async cancelCommand(run: IdOf, command: IdOf, options: CallOptions = {}): Promise<Command> {
    return await this.#post(["capsule-runs", idOf(run), "commands", idOf(command), "cancel"], undefined, options);
  }

  /**
   * What a command printed, byte for byte, from byte `from` on; with `follow` as it prints, until it has ended. After a break it goes on
   * where it was. Of endless output the oldest bytes are gone: then the first `offset` is higher.
   * @operationId getCommandOutput
   */
  output(run: IdOf, command: IdOf, options: OutputOptions = {}): AsyncGenerator<OutputChunk, void, undefined> {
    return output(this.#context, idOf(run), idOf(command), options);
  }
}
