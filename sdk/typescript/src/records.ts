// SPDX-License-Identifier: Apache-2.0
// What the server answers, member for member. Times are UTC, "2026-11-30T04:51:17.123456Z"; durations "hh:mm:ss"; ids are UUIDs.
// Members that a newer server adds are there, too; they only have no type.

export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };
export type JsonObject = Record<string, JsonValue>;

/** A failure as the server tells it (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  /** Stable; docs/reference/errors.md lists them. */
  code: string;
  /** One sentence for people: what could not be done. */
  detail: string;
  /** The member or parameter at fault, `files[2].path`. */
  field?: string;
  /** What one may do. */
  help: string;
  /** Of a deploy. */
  diagnostics?: Diagnostic[];
}

/** A page of a list. */
export interface Page<T = unknown> {
  items: T[];
  /** Where the next page begins; null at the end. */
  next: string | null;
}

// ---- server ----

/** What a server says of itself without a sign-in. */
export interface ServerInfo {
  product: string;
  version: string;
  apiVersion: number;
}

export interface Health {
  status: string;
  version: string;
}

/** An image that capsules may run on. */
export interface Image {
  name: string;
  digest: string;
  sizeBytes?: number;
  dateBuilt?: string;
  components?: { name: string; version: string }[];
  /** Parts that could not be had when it was built. */
  missing?: string[];
}

export interface PruneResult {
  layersRemoved: number;
  bytesFreed: number;
}

/** What the server found about a part of itself or its host. */
export interface Check {
  name: string;
  status: "ok" | "warning" | "failed";
  detail: string;
  /** What to do; null where it is ok. */
  remedy: string | null;
}

export interface Doctor {
  checks: Check[];
  /** Where the server keeps its state. */
  stateFolder: string;
}

// ---- access ----

/** Who is asking. */
export interface Whoami {
  id: string;
  name: string;
  role: "admin" | "user";
  /** How the caller signed in. */
  via: "key" | "socket" | "run";
  defaultNamespace: string | null;
}

export interface Namespace {
  id: string;
  name: string;
  owner: string;
  dateCreated: string;
  /** When made: it is the caller's default now. */
  becameDefault?: boolean;
  /** When made: the default that stays. */
  yourDefault?: string;
}

/** A user who shares a namespace with its owner. */
export interface Member {
  id: string;
  name: string;
  dateCreated: string;
}

export interface Key {
  id: string;
  name: string;
  user: string;
  dateCreated: string;
  expires: string | null;
  dateLastUsed: string | null;
  /** Made inside that run; removed at its end. */
  runId: string | null;
}

/** A key just made: `key` is shown this once. */
export interface NewKey extends Key {
  key: string;
}

export interface User {
  id: string;
  name: string;
  role: "admin" | "user";
  dateCreated: string;
  /** Made inside that run; removed at its end. */
  runId: string | null;
  /** That run has ended, and the user owns namespaces still: no sign-in any more. */
  stopped: boolean;
}

/** A user just made, with a first key that is shown this once. */
export interface NewUser extends User {
  key: string;
}

// ---- file systems and secrets ----

/** A file system. */
export interface Vfs {
  id: string;
  name: string;
  namespace: string;
  dateCreated: string;
  limitBytes: number;
  /** When asked for alone; null when there is too much to count. */
  usedBytes?: number | null;
}

/**
 * A file, folder or link. Names are bytes: where one is not UTF-8, or could not be told from an escaped one, `path`, `name` and `target`
 * come with the odd bytes and `%` as `%XX`, and `nameEscaped` is true.
 */
export interface Entry {
  path: string;
  name: string;
  type: "file" | "folder" | "link" | "fifo" | "socket" | "device";
  size: number;
  /** Octal, four digits. */
  mode: string;
  dateModified: string | null;
  /** Of a link. */
  target?: string;
  nameEscaped: boolean;
}

/** A secret without its value, which no answer has. */
export interface Secret {
  id: string;
  name: string;
  namespace: string;
  dateCreated: string;
  /** When it got its value. */
  dateUpdated: string;
}

// ---- providers ----

/** A provider of models without its key, which no answer has. */
export interface Provider {
  name: string;
  /** The protocol: chat completions as OpenAI has them, or messages as Anthropic has them. */
  wire: "chat" | "messages";
  /** Null where one has to be set. */
  baseUrl: string | null;
  /** How it is told that an answer has to fit a JSON schema. */
  schemaMode: "schema" | "tool" | "json" | "none";
  /** Requests to it at once; more wait. */
  concurrency: number;
  /** A decimal, of a million tokens. */
  pricePerMillionTokensIn: string | null;
  pricePerMillionTokensOut: string | null;
  hasKey: boolean;
  needsKey: boolean;
  /** Whether its models can be asked: nothing that it needs is missing. */
  ready: boolean;
  /** Whether anything of it was set. */
  isSet: boolean;
  dateCreated: string | null;
  dateUpdated: string | null;
}

/** What came of asking a provider for a word. */
export interface ProviderTest {
  outcome: InteractionEndReason;
  /** Why there was no answer. */
  failureDetails: string;
  answer: string;
  /** As the provider said. */
  model: string | null;
  /** Of the last request; null when there was none. */
  httpStatus: number | null;
  /** That were sent. */
  requests: number;
  tokensIn: number | null;
  tokensOut: number | null;
  milliseconds: number;
}

// ---- resources ----

/** A fault in a file of a project. */
export interface Diagnostic {
  file: string | null;
  line: number;
  /** In characters. */
  column: number;
  message: string;
  hint?: string;
  sourceLine?: string;
}

export interface Deployed {
  kind: "agent" | "app" | "capsule" | "interaction" | "json" | "prompt";
  name: string;
  version: number;
}

/** What a deploy did, or would do. */
export interface DeployResult {
  dryRun: boolean;
  created: Deployed[];
  updated: Deployed[];
  unchanged: Deployed[];
  removed: Deployed[];
  warnings: Diagnostic[];
}

/** A resource in a list, with its newest version. */
export interface ResourceItem {
  name: string;
  namespace: string;
  version: number;
  dateCreated: string;
  dateUpdated: string;
}

export interface Resource<Definition = JsonValue> {
  name: string;
  namespace: string;
  version: number;
  versions: { version: number; dateCreated: string }[];
  dateCreated: string;
  dateUpdated: string;
  /** Its properties as they were checked; a JSON schema or prompt as its own kind. */
  definition: Definition;
}

export interface Limits {
  memory: string | null;
  /** Null is all of the machine's. */
  cpus: number | null;
  pids: number | null;
  disk: string | null;
}

export interface StartupCommand {
  command: string;
  arguments?: string[] | null;
  runAsUser?: string | null;
  maxDuration?: string | null;
  wait?: boolean | null;
}

export interface CapsuleDefinition {
  packages: string[];
  users: { name: string }[];
  vfs: { vfs?: string; mountName: string }[];
  secrets: { secret?: string; mountName: string }[];
  startup: StartupCommand[];
  autoTerminate: boolean;
  maxDuration: string;
  image: string | null;
  limits: Limits;
  network: "none" | "internet";
  environment: Record<string, string>;
}

export type Capsule = Resource<CapsuleDefinition>;

export interface AppInput {
  name: string;
  type: "bool" | "int" | "decimal" | "string" | "guid" | "jsonObject" | "jsonArray";
}

export interface App extends Resource {
  /** In the order of `main`'s parameters; null of a program that this server does not understand any more. */
  inputs: AppInput[] | null;
  returns: AppInput["type"] | "void" | null;
}

// ---- capsule runs ----

export type CapsuleRunStatus = "Starting" | "Running" | "Finished" | "Error";
export type CapsuleRunEndReason =
  | "exited"
  | "signaled"
  | "timeout"
  | "outOfMemory"
  | "terminated"
  | "startFailed"
  | "diskFull"
  | "supervisorLost"
  | "nodeLost"
  | "parentEnded";

/** A capsule that runs, or ran. */
export interface CapsuleRun {
  id: string;
  namespace: string;
  capsule: string;
  version: number;
  status: CapsuleRunStatus;
  endReason: CapsuleRunEndReason | null;
  /** With `timeout`: the limit that was passed. */
  limitMs?: number;
  /** With `signaled`. */
  signal?: number;
  /** With `terminated`; as `startedBy`. */
  terminatedBy?: string;
  /** Empty while it lives and when it did all that it was for. */
  failureDetails: string;
  limitsReached: string[];
  /** Of one that was asked for alone. */
  limits?: Limits;
  labels: Record<string, string>;
  /** A user; "ada (run ID)" when it was started inside that run, "ada (app run ID)" when an app started it. */
  startedBy: string;
  /** The run inside which it was started. */
  parentRunId: string | null;
  /** The run of an app that started it. */
  parentAppRunId: string | null;
  dateCreated: string;
  dateReady: string | null;
  dateEnded: string | null;
  maxDuration: string;
  deadline: string | null;
  image: string;
  imageDigest: string;
  /** How long each part of the start took, in microseconds. */
  phases: { name: string; us: number }[];
  /** When what its commands printed was removed. */
  dateOutputsRemoved: string | null;
  memoryPeakBytes: number;
  cpuMicroseconds: number;
  /** From its start to its end, or until now. */
  runSeconds: number;
  /** When it was asked for: what happened, the oldest first. */
  story?: StoryEntry[];
}

/** Something that happened in a run. */
export interface StoryEntry {
  number: number;
  time: string;
  kind:
    | "phase"
    | "startupStarted"
    | "startupEnded"
    | "ready"
    | "note"
    | "commandStarted"
    | "commandEnded"
    | "extended"
    | "ending"
    | "ended"
    | "closed";
  /** A sentence for people. */
  what: string;
  commandId?: string;
}

/** What would be started. */
export interface RunPlan {
  dryRun: boolean;
  namespace: string;
  capsule: string;
  version: number;
  image: string;
  imageDigest: string;
  mounts: { vfs: string; vfsId: string; mountName: string }[];
  /** Their names; never their values. */
  secrets: { secret: string; secretId: string; mountName: string }[];
  definition: CapsuleDefinition;
}

// ---- commands ----

export type CommandStatus = "Queued" | "Running" | "Finished" | "Error" | "Aborted";
export type CommandEndReason =
  "exited" | "signaled" | "timeout" | "outOfMemory" | "terminated" | "startFailed" | "runEnded";

/** A command in a list: without what it printed. */
export interface CommandItem {
  id: string;
  runId: string;
  command: string;
  arguments: string[];
  runAsUser: string;
  async: boolean;
  maxDuration: string | null;
  workingDirectory: string | null;
  environment: Record<string, string>;
  status: CommandStatus;
  endReason: CommandEndReason | null;
  /** Of a signal 128 and its number; null: it never started, or did not end by itself. */
  exitCode: number | null;
  /** With `timeout`: the limit that was passed. */
  limitMs?: number;
  /** With `signaled`. */
  signal?: number;
  /** Why it was aborted or could not run; empty where the exit code says all. */
  failureDetails: string;
  limitsReached: ("memory" | "pids" | "disk")[];
  dateCreated: string;
  dateStarted: string | null;
  dateEnded: string | null;
}

/** A command in a run. */
export interface Command extends CommandItem {
  /** When it has ended: the last 65,536 characters (code points) of what it printed; bytes that are no UTF-8 are U+FFFD. */
  outputStandard: string;
  /** The same of its error output. */
  outputError: string;
  /** Characters in all; only where there were more. */
  outputStandardFullLength?: number;
  outputErrorFullLength?: number;
}

/** A shell on a terminal in a run. */
export interface Shell {
  id: string;
  runId: string;
  user: string;
  term: string;
  columns: number;
  rows: number;
  status: "Running" | "Ended";
  /** 128 and the signal where one killed it; null unless it `exited`. */
  exitCode: number | null;
  /** `closed` by a request, `abandoned` by its readers; `failed`: its terminal was lost. */
  endReason: "exited" | "runEnded" | "closed" | "abandoned" | "failed" | null;
  /** A sentence about an end that was not the shell's own. */
  details: string | null;
  dateCreated: string | null;
  dateEnded: string | null;
}

// ---- app runs ----

export type AppRunStatus = "Running" | "Finished" | "Error";
export type AppRunEndReason =
  | "returned"
  | "failed"
  | "timeout"
  | "outOfMemory"
  | "tooDeep"
  | "callLimit"
  | "cancelled"
  | "parentEnded"
  | "replayDiverged";

/** A run of an app in a list: without inputs, outputs and what it returned. */
export interface AppRunItem {
  id: string;
  namespace: string;
  app: string;
  version: number;
  status: AppRunStatus;
  endReason: AppRunEndReason | null;
  /** With `timeout`: the limit that was passed. */
  limitMs?: number;
  /** With `cancelled`; as `startedBy`. */
  cancelledBy?: string;
  /** Empty while it lives and when it returned; of a `throw` that nothing caught, its text alone. */
  failureDetails: string;
  /** Of the error that nothing caught: `Thrown`, `Overflow`, `notFound`, … */
  failureCode: string | null;
  /** Where it came up, `analyst.mtc:12:3`. */
  failurePlace: string | null;
  /** The calls that were under way there, the innermost first; 50 at most. */
  failureStack: { function: string; place: string }[];
  /** What keeps it, for people, where that is not of its own doing. */
  waitingFor: string | null;
  startedBy: string;
  /** The capsule run inside which it was started. */
  parentRunId: string | null;
  /** The run of an app that started it. */
  parentAppRunId: string | null;
  /** The run that it repeats. */
  rerunOf: string | null;
  dateCreated: string;
  dateEnded: string | null;
  maxDuration: string;
  deadline: string | null;
  /** From its start to its end, or until now. */
  runSeconds: number;
  /** Lines that were printed, those no longer kept included. */
  consoleOutputsFullCount: number;
  /** Calls to the outside that it made. */
  callCount: number;
}

export interface AppRun extends AppRunItem {
  /** By the names of the parameters. */
  inputs: JsonObject;
  /** What the program set by `AppStateSetOutput…`, in the order in which each was set first. */
  outputs: JsonObject;
  /** What `main` returned: a string, number, bool, object or list; null of void, and until then. */
  returnValue: JsonValue;
  /** Where it was asked for: what it printed, as far as that is kept. */
  consoleOutputs?: ConsoleLine[];
}

/** A run of an app that has ended, with what it printed. */
export interface AppRunResult extends AppRun {
  returnValue: JsonValue;
  consoleOutputs: ConsoleLine[];
}

/** A line that an app printed. */
export interface ConsoleLine {
  /** Lines of console and log are counted together. */
  number: number;
  /** With its line end, where it has one. */
  text: string;
  date: string;
}

export interface LogLine {
  number: number;
  level: "info" | "warning" | "error";
  text: string;
  date: string;
}

export interface ConsolePart {
  items: ConsoleLine[];
  /** The run has ended, and no line follows these. */
  ended: boolean;
  /** Number of the last of these lines. */
  next: number;
  /** Lines that were printed so far, those no longer kept included. */
  fullCount: number;
}

export interface LogPart {
  items: LogLine[];
  ended: boolean;
  next: number;
}

// ---- interaction runs ----

export type InteractionRunStatus = "Running" | "Finished" | "Error";
export type InteractionEndReason =
  | "answered"
  | "wrongAnswer"
  | "cut"
  | "refused"
  | "noKey"
  | "badKey"
  | "noModel"
  | "rateLimited"
  | "badRequest"
  | "providerFailed"
  | "unreachable"
  | "timeout"
  | "cancelled"
  | "parentEnded";

/** A run of an interaction in a list: without inputs and output. */
export interface InteractionRunItem {
  id: string;
  namespace: string;
  interaction: string;
  version: number;
  /** As the agent names it, `deepseek.deepseek-v4-flash`. */
  model: string;
  status: InteractionRunStatus;
  endReason: InteractionEndReason | null;
  /** With `timeout`: the limit that was passed. */
  limitMs?: number;
  /** With `cancelled`; as `startedBy`. */
  cancelledBy?: string;
  /** Empty while it lives and when it was answered; else why, and what to do. */
  failureDetails: string;
  startedBy: string;
  parentRunId: string | null;
  parentAppRunId: string | null;
  dateCreated: string;
  dateEnded: string | null;
  maxDuration: string;
  deadline: string | null;
  runSeconds: number;
  /** Attempts that were begun. */
  attemptCount: number;
  /** Of all attempts; null where the provider told nothing. */
  tokensIn: number | null;
  tokensOut: number | null;
  /** A decimal, in the currency of the prices that are set for the provider; null where none are. */
  cost: string | null;
}

export interface InteractionRun extends InteractionRunItem {
  /** What the model answered: JSON as a text where the interaction has a schema, which it fits; else any text. */
  output: string | null;
  /** By the names that the interaction declares. */
  inputs: JsonObject;
}

/** What the model was asked, what it answered, and what was wrong with that. */
export interface InteractionAttempt {
  number: number;
  /** Null while it is under way. */
  outcome: InteractionEndReason | null;
  /** What was wrong with the answer, as the model is told. */
  faults: string[];
  /** What was asked, the oldest first. */
  messages: { role: "system" | "user" | "assistant"; content: string }[];
  /** As it came; empty where none did. */
  answer: string;
  /** What the provider sent apart from it. */
  reasoning: string;
  /** As the provider calls it. */
  model: string | null;
  /** Of the last request. */
  httpStatus: number | null;
  /** That were sent for it, repeats included. */
  requests: number;
  tokensIn: number | null;
  tokensOut: number | null;
  dateStarted: string;
  dateEnded: string | null;
}

/** A piece of what a model says. */
export interface InteractionText {
  stream: number;
  /** Whose answer it is. */
  attempt: number;
  /** Bytes of the text before this. */
  from: number;
  text: string;
  /** Bytes of the text that are known now. */
  next: number;
  /** Whether the run has ended. */
  ended: boolean;
}

const ENDS: ReadonlySet<string> = new Set(["Finished", "Error", "Aborted"]);

/** Whether a run (of a capsule, an app, an interaction) or a command has ended. */
export function hasEnded(record: { readonly status: string }): boolean {
  return ENDS.has(record.status);
}

// ---- events ----

export type EventKind =
  | "capsuleRun"
  | "command"
  | "appRun"
  | "interactionRun"
  | "capsule"
  | "app"
  | "agent"
  | "interaction"
  | "json"
  | "prompt"
  | "namespace"
  | "vfs"
  | "secret"
  | "user"
  | "key"
  | "provider";

/** The first event of a stream. */
export interface EventHello {
  /** Events with numbers above it follow. */
  after: number;
  /** The server says something at least so often. */
  heartbeatSeconds: number;
}

/** Something changed. */
export interface EventChange {
  /** Events are numbered; `after` of `events.open` takes it. */
  number: number;
  date: string;
  kind: EventKind;
  /** `created`, `updated`, `deleted`; of capsule runs also `ready`, of commands `started`, of runs and commands `ended`. More may come. */
  change: string;
  /** Of what changed; of a provider its name. */
  id: string;
  /** Null of users, keys and providers, and where it is gone. */
  namespace: string | null;
  /** Of a command its run, of a run itself. */
  runId: string | null;
  /** Of what changed; of a run that of its capsule, app or interaction; null of a command. */
  name: string | null;
  /** Of runs and commands, as it is when this is sent; of an ended one it is final. */
  status: string | null;
  endReason: string | null;
  exitCode: number | null;
}

/** A piece of what a command printed; with `output`. */
export interface EventOutput {
  runId: string;
  commandId: string;
  stream: "standard" | "error";
  /** Of its first byte in the stream. */
  offset: number;
  /** How many bytes this is. */
  bytes: number;
  /** Whole characters; each byte that is no UTF-8 is U+FFFD. */
  text: string;
}

/** A line that an app printed; one of more than 8 KiB comes in pieces with the same number. With `output`. */
export interface EventConsole {
  runId: string;
  number: number;
  /** Bytes of the line before this piece; 0 begins one. */
  from: number;
  text: string;
  date: string | null;
}

/** More of what a model says; with `output`. */
export interface EventText {
  runId: string;
  /** Another number is another text, which takes the place of the one before. */
  stream: number;
  /** Bytes of the text before this. */
  from: number;
  text: string;
}

/** The last event of a stream. */
export interface EventEnd {
  code: string;
  /** The number to go on from. */
  after: number;
  /** For people. */
  sentence: string;
}

/** Events are missing here: those that came while there was no connection and are kept no longer, or that nobody read. */
export interface EventGap {
  event: "gap";
}

export type ChangeEvent = EventChange & { event: "change" };
export type OutputEvent = EventOutput & { event: "output" };
export type ConsoleEvent = EventConsole & { event: "console" };
export type TextEvent = EventText & { event: "text" };

/** What a stream of events gives; `event` says which it is. */
export type MaitentoEvent = ChangeEvent | OutputEvent | ConsoleEvent | TextEvent | EventGap;
