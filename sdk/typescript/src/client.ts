// SPDX-License-Identifier: Apache-2.0
import { Keys, Users } from "./access.js";
import { AppRuns, Apps } from "./apps.js";
import { CapsuleRuns } from "./capsule-runs.js";
import { Capsules } from "./capsules.js";
import { Context, type NamespaceOptions } from "./context.js";
import { Events } from "./events.js";
import { Http, type CallOptions } from "./http.js";
import { InteractionRuns, Interactions } from "./interactions.js";
import { Namespaces } from "./namespaces.js";
import { pathOf } from "./paths.js";
import { projectFiles } from "./project.js";
import { Providers } from "./providers.js";
import type { DeployResult, Whoami } from "./records.js";
import { Resources } from "./resources.js";
import { Secrets } from "./secrets.js";
import { Images, Server } from "./server.js";
import { readSettings, type MaitentoOptions } from "./settings.js";
import { Shells } from "./shells.js";
import { FileSystems } from "./vfs.js";
import { Waiting } from "./waiting.js";

export interface DeployOptions extends NamespaceOptions {
  /** Check, and say what would be done. */
  dryRun?: boolean | undefined;
  /** Remove from the namespace what the folder no longer has. */
  prune?: boolean | undefined;
  /** Told of each file that is left out, and why: links, files that are none of a project's. */
  onSkipped?: ((path: string, why: string) => void) | undefined;
}

/**
 * A server, signed in. What is not given comes from MAITENTO_URL, MAITENTO_API_KEY and MAITENTO_NAMESPACE, then
 * ~/.maitento/settings.json, then the host's own socket. Nothing is asked of the server before the first call.
 *
 * A client that nobody uses does not keep the process alive; `close()` or `await using` ends its connections at once.
 */
export class Maitento implements AsyncDisposable {
  readonly #http: Http;
  readonly #context: Context;

  /** The server itself. */
  readonly server: Server;
  /** Images that capsules may run on. */
  readonly images: Images;
  /** Namespaces, in which all else is. */
  readonly namespaces: Namespaces;
  /** API keys. */
  readonly keys: Keys;
  /** Users, for administrators. */
  readonly users: Users;
  /** File systems, and their files. */
  readonly vfs: FileSystems;
  /** Values that capsules mount. */
  readonly secrets: Secrets;
  /** Who answers for models. */
  readonly providers: Providers;
  /**
   * Recipes for machines, and starting them.
   * @operationIds get=getCapsule list=listCapsules
   */
  readonly capsules: Capsules;
  /** Runs of capsules, and the commands in them. */
  readonly capsuleRuns: CapsuleRuns;
  /** Shells on terminals in runs. */
  readonly shells: Shells;
  /**
   * Agents of a namespace.
   * @operationIds get=getAgent list=listAgents
   */
  readonly agents: Resources;
  /**
   * Apps of a namespace, and starting them.
   * @operationIds get=getApp list=listApps
   */
  readonly apps: Apps;
  /** Runs of apps. */
  readonly appRuns: AppRuns;
  /**
   * Interactions of a namespace, and starting them.
   * @operationIds get=getInteraction list=listInteractions
   */
  readonly interactions: Interactions;
  /** Runs of interactions. */
  readonly interactionRuns: InteractionRuns;
  /**
   * JSON schemas of a namespace.
   * @operationIds get=getJson list=listJson
   */
  readonly jsonSchemas: Resources;
  /**
   * Prompts of a namespace.
   * @operationIds get=getPrompt list=listPrompts
   */
  readonly prompts: Resources;
  /** What happens on the server, as it happens. */
  readonly events: Events;

  constructor(options: MaitentoOptions = {}) {
    this.#http = new Http(readSettings(options, process.env));
    const waiting = new Waiting(this.#http);
    const context = new Context(this.#http, waiting);
    this.#context = context;
    this.server = new Server(context);
    this.images = new Images(context);
    this.namespaces = new Namespaces(context);
    this.keys = new Keys(context);
    this.users = new Users(context);
    this.vfs = new FileSystems(context);
    this.secrets = new Secrets(context);
    this.providers = new Providers(context);
    this.capsules = new Capsules(context);
    this.capsuleRuns = new CapsuleRuns(context);
    this.shells = new Shells(context);
    this.agents = new Resources(context, "agents");
    this.apps = new Apps(context);
    this.appRuns = new AppRuns(context);
    this.interactions = new Interactions(context);
    this.interactionRuns = new InteractionRuns(context);
    this.jsonSchemas = new Resources(context, "json");
    this.prompts = new Resources(context, "prompts");
    this.events = new Events(this.#http, waiting);
  }

  /** The address of the server. */
  get url(): string {
    return this.#http.settings.url;
  }

  /** What the client, the environment or the settings file say; else null, and your default on the server holds. */
  get defaultNamespace(): string | null {
    return this.#http.settings.namespace ?? null;
  }

  /**
   * Who is asking.
   * @operationId getWhoami
   */
  async whoami(options: CallOptions = {}): Promise<Whoami> {
    return await this.#http.call({ method: "GET", path: pathOf(["whoami"]), signal: options.signal });
  }

  /**
   * Deploys the project in a folder: all of it, or nothing. Where files have faults the error (`deployFailed`) lists all of them, with
   * their places, in `diagnostics`.
   * @operationId deploy
   */
  async deploy(folder: string, options: DeployOptions = {}): Promise<DeployResult> {
    const { dryRun = false, prune = false, onSkipped, signal } = options;
    const files = await projectFiles(folder, onSkipped, signal);
    return await this.#context.call(options, "POST", ["deploy"], { json: { files, dryRun, prune } });
  }

  /** Ends the client's connections and event streams. Calls under way fail (`closed`), as do later ones. */
  close(): Promise<void> {
    this.events.close();
    this.#http.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
