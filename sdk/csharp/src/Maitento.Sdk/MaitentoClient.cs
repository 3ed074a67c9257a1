// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;
using Maitento.Sdk.Resources;

namespace Maitento.Sdk;

/// <summary>
/// A server, signed in. One client may be used by any number of tasks at a time; keep one for the life of a program, and dispose of it
/// at its end. Failures are <see cref="MaitentoException"/>. What is harmless to repeat is repeated while the server is away for a
/// moment; starts and commands carry a key, so that none of them is ever done twice.
/// </summary>
public sealed class MaitentoClient : IAsyncDisposable
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;
    private readonly Waiting _waiting;

    /// <summary>A client with options; what they leave out comes from the environment and the settings file.</summary>
    /// <param name="options">Which server, as whom, in which namespace.</param>
    /// <exception cref="MaitentoException">The address, the key or the settings file is wrong (<c>badRequest</c>).</exception>
    public MaitentoClient(MaitentoClientOptions options)
        : this(options, Environment.GetEnvironmentVariable)
    {
    }

    internal MaitentoClient(MaitentoClientOptions options, Func<string, string?> environment)
    {
        ArgumentNullException.ThrowIfNull(options);
        var settings = Settings.Read(options, environment);
        _transport = new Transport(settings, options.Patience);
        _scope = new NamespaceScope(_transport, settings);
        _waiting = new Waiting(new EndWatch());
        Events = new EventsClient(_transport, _waiting.Watch, options.Silence);
        Server = new ServerClient(_transport);
        Images = new ImagesClient(_transport);
        Namespaces = new NamespacesClient(_transport, _scope);
        Keys = new KeysClient(_transport);
        Users = new UsersClient(_transport);
        VirtualFileSystems = new VirtualFileSystemsClient(_transport, _scope);
        Secrets = new SecretsClient(_transport, _scope);
        Providers = new ProvidersClient(_transport);
        CapsuleProcesses = new CapsuleProcessesClient(_transport, _scope, _waiting);
        Capsules = new CapsulesClient(_transport, _scope, CapsuleProcesses);
        AppRuns = new AppRunsClient(_transport, _waiting);
        Apps = new AppsClient(_transport, _scope, AppRuns);
        InteractionRuns = new InteractionRunsClient(_transport, _waiting);
        Interactions = new InteractionsClient(_transport, _scope, InteractionRuns);
        Agents = new AgentsClient(_transport, _scope);
        JsonSchemas = new JsonSchemasClient(_transport, _scope);
        Prompts = new PromptsClient(_transport, _scope);
        Shells = new ShellsClient(_transport);
    }

    /// <summary>The namespace that the options, the environment or the settings file name; else null, and the server's rule holds.</summary>
    public string? DefaultNamespace => _scope.Default;

    /// <summary>The server itself.</summary>
    public ServerClient Server { get; }

    /// <summary>Base images.</summary>
    public ImagesClient Images { get; }

    /// <summary>Namespaces and their members.</summary>
    public NamespacesClient Namespaces { get; }

    /// <summary>API keys.</summary>
    public KeysClient Keys { get; }

    /// <summary>Users, for administrators.</summary>
    public UsersClient Users { get; }

    /// <summary>File systems and what is in them.</summary>
    public VirtualFileSystemsClient VirtualFileSystems { get; }

    /// <summary>Secrets.</summary>
    public SecretsClient Secrets { get; }

    /// <summary>Providers of models.</summary>
    public ProvidersClient Providers { get; }

    /// <summary>Capsules: the recipes.</summary>
    public CapsulesClient Capsules { get; }

    /// <summary>Runs of capsules: the machines, their commands and files.</summary>
    public CapsuleProcessesClient CapsuleProcesses { get; }

    /// <summary>Apps.</summary>
    public AppsClient Apps { get; }

    /// <summary>Runs of apps.</summary>
    public AppRunsClient AppRuns { get; }

    /// <summary>Interactions.</summary>
    public InteractionsClient Interactions { get; }

    /// <summary>Runs of interactions.</summary>
    public InteractionRunsClient InteractionRuns { get; }

    /// <summary>Agents.</summary>
    public AgentsClient Agents { get; }

    /// <summary>JSON schemas.</summary>
    public JsonSchemasClient JsonSchemas { get; }

    /// <summary>Prompts.</summary>
    public PromptsClient Prompts { get; }

    /// <summary>Shells on terminals in runs.</summary>
    public ShellsClient Shells { get; }

    /// <summary>What happens on the server, as it happens.</summary>
    public EventsClient Events { get; }

    /// <summary>
    /// A client of what the environment says (<c>MAITENTO_URL</c>, <c>MAITENTO_API_KEY</c>, <c>MAITENTO_NAMESPACE</c>), then
    /// <c>~/.maitento/settings.json</c>, then the socket of this machine. Nothing is asked of the server yet.
    /// </summary>
    /// <returns>The client.</returns>
    public static MaitentoClient CreateFromEnvironment() => new(new MaitentoClientOptions());

    /// <summary>
    /// Deploys the project in a folder: all of it, or nothing. Sent are the files <c>.mtr</c>, <c>.mtc</c>, <c>.json</c> and <c>.md</c> in
    /// its folders <c>agents</c>, <c>apps</c>, <c>capsules</c>, <c>connectors</c>, <c>interactions</c>, <c>json</c>, <c>prompts</c> and
    /// <c>tools</c>; not links, not names that begin with a dot or end with <c>~</c>; at most 8 MiB a file.
    /// </summary>
    /// <param name="folder">Of the project.</param>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="dryRun">Check, and say what would be done.</param>
    /// <param name="prune">Remove what is deployed and not in the folder.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What was done.</returns>
    /// <exception cref="MaitentoException"><c>deployFailed</c>: the project has faults, which
    /// <see cref="MaitentoException.Diagnostics"/> lists; nothing was changed.</exception>
    [Operation("deploy", "deploy")]
    public async Task<DeployResult> DeployAsync(
        string folder, string? ns = null, bool dryRun = false, bool prune = false, CancellationToken cancellationToken = default)
    {
        var body = new DeployBody(await Project.ReadAsync(folder, cancellationToken).ConfigureAwait(false), dryRun, prune);
        return await _scope.CallAsync(
            ns, name => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, new ApiPath("namespaces", name, "deploy"), body, SdkJson.Default.DeployBody),
                SdkJson.Default.DeployResult, cancellationToken),
            cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Who is asking.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The caller.</returns>
    [Operation("whoami", "getWhoami")]
    public Task<Whoami> WhoamiAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("whoami")), SdkJson.Default.Whoami, cancellationToken);

    /// <summary>Closes its event streams and connections.</summary>
    /// <returns>When they are closed.</returns>
    public async ValueTask DisposeAsync()
    {
        await Events.DisposeAsync().ConfigureAwait(false);
        _waiting.Dispose();
        _transport.Dispose();
    }
}
