// SPDX-License-Identifier: Apache-2.0
// Where the address, the key and the namespace come from: the same rule as that of mt.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MaitentoError } from "./errors.js";

export const DEFAULT_URL = "unix:/run/maitento/api.sock";
export const SETTINGS_SHOWN = "~/.maitento/settings.json";

/** What a client is made with. Each member that is absent comes from the environment, then the settings file. */
export interface MaitentoOptions {
  /** `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:/PATH`. Else MAITENTO_URL, `api.url` of ~/.maitento/settings.json, the host's own socket. */
  url?: string | undefined;
  /** An API key, `mt_…`. Else MAITENTO_API_KEY, or `api.key` of the settings file where that names the same server. Not needed on a socket. */
  apiKey?: string | undefined;
  /** For calls that name none. Else MAITENTO_NAMESPACE, `defaultNamespace` of the settings file, your default on the server. */
  namespace?: string | undefined;
}

export interface Settings {
  url: string;
  /** For people: where the address was found. */
  urlSource: string;
  apiKey: string | undefined;
  namespace: string | undefined;
  /** For people: where the namespace was found. */
  namespaceSource: string;
}

interface SettingsFile {
  url: string | undefined;
  key: string | undefined;
  namespace: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

function member(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}

function text(value: unknown, name: string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string") return value;
  throw new MaitentoError("badRequest", `${SETTINGS_SHOWN}: ${name} must be a text (correct or remove it)`);
}

function readFile(environment: Environment): SettingsFile {
  const home = environment["HOME"] ?? "";
  let content = "{}";
  try {
    if (home.startsWith("/")) content = readFileSync(join(home, ".maitento", "settings.json"), "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOENT" && code !== "ENOTDIR")
      throw new MaitentoError("badRequest", `cannot read ${SETTINGS_SHOWN}: ${(error as Error).message}`, {
        cause: error,
      });
  }
  let file: unknown;
  try {
    file = JSON.parse(content);
  } catch {
    // The parser's own words quote the file, which may hold a key.
    throw new MaitentoError("badRequest", `${SETTINGS_SHOWN} is no JSON: correct or remove it`);
  }
  const api = member(file, "api");
  return {
    url: text(member(api, "url"), "api/url"),
    key: text(member(api, "key"), "api/key"),
    namespace: text(member(file, "defaultNamespace"), "defaultNamespace"),
  };
}

function first(...found: readonly (readonly [string | undefined, string])[]): readonly [string | undefined, string] {
  return found.find(([value]) => value !== undefined && value !== "") ?? [undefined, ""];
}

export function readSettings(options: MaitentoOptions, environment: Environment): Settings {
  const file = readFile(environment);
  const [url, urlSource] = first(
    [options.url, "the client's own `url`"],
    [environment["MAITENTO_URL"], "MAITENTO_URL"],
    [file.url, SETTINGS_SHOWN],
    [DEFAULT_URL, `the socket of this host, as neither \`url\` nor MAITENTO_URL nor ${SETTINGS_SHOWN} names a server`],
  );
  const [key] = first(
    [options.apiKey, ""],
    [environment["MAITENTO_API_KEY"], ""],
    // A key goes only to the server that it was stored for.
    [url === file.url ? file.key : undefined, ""],
  );
  const [namespace, namespaceSource] = first(
    [options.namespace, "the client's own `namespace`"],
    [environment["MAITENTO_NAMESPACE"], "MAITENTO_NAMESPACE"],
    [file.namespace, SETTINGS_SHOWN],
  );
  return {
    url: url ?? DEFAULT_URL,
    urlSource,
    apiKey: key,
    namespace,
    namespaceSource: namespaceSource || "your default on the server",
  };
}
