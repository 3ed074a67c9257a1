// SPDX-License-Identifier: Apache-2.0
// All that the package gives.
export { Maitento, type DeployOptions } from "./client.js";
export { CapsuleCommandAbortedError, MaitentoError, type ErrorDetails } from "./errors.js";
export { EventStream, type EventOptions, type Events } from "./events.js";
export type { Keys, Users } from "./access.js";
export type {
  AppRunListOptions,
  AppRunOptions,
  AppRuns,
  Apps,
  AppStart,
  AppStartOptions,
  LinesOptions,
} from "./apps.js";
export type {
  CapsuleRuns,
  CommandListOptions,
  CommandRequest,
  ExecAndWaitOptions,
  ExecOptions,
  RunListOptions,
} from "./capsule-runs.js";
export type { Capsules, CapsuleStart, CapsuleStartOptions, StartupEntry } from "./capsules.js";
export type { ListOptions, NamespaceOptions } from "./context.js";
export type { Duration } from "./duration.js";
export type {
  Content,
  EscapedOptions,
  Files,
  PathOf,
  Progress,
  RunFiles,
  TransferOptions,
  VfsFiles,
  WriteOptions,
} from "./files.js";
export type { CallOptions } from "./http.js";
export type {
  InteractionRunListOptions,
  InteractionRuns,
  Interactions,
  InteractionStart,
  InteractionStartOptions,
} from "./interactions.js";
export type { Namespaces } from "./namespaces.js";
export type { OutputChunk, OutputOptions, StreamName } from "./output.js";
export type { IdOf } from "./paths.js";
export type { Providers, ProviderSettings } from "./providers.js";
export * from "./records.js";
export type { Resources, VersionOptions } from "./resources.js";
export type { Secrets } from "./secrets.js";
export type { Images, Server } from "./server.js";
export type { MaitentoOptions } from "./settings.js";
export type { Shells, ShellStart } from "./shells.js";
export type { StartOnce } from "./starting.js";
export type { FileSystems } from "./vfs.js";
export { VERSION } from "./version.js";
export type { WaitOptions } from "./waiting.js";
