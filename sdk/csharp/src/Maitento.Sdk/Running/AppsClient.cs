// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Nodes;
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Apps: programs that the server runs. <see cref="AppRunsClient"/> has their runs.</summary>
public sealed class AppsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;
    private readonly AppRunsClient _runs;

    internal AppsClient(Transport transport, NamespaceScope scope, AppRunsClient runs)
    {
        _transport = transport;
        _scope = scope;
        _runs = runs;
    }

    /// <summary>The apps of a namespace, each with its newest version.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("apps.list", "listApps")]
    public Task<IReadOnlyList<ResourceItem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "apps"), SdkJson.Default.ResourceItemPage, cancellationToken),
            cancellationToken);

    /// <summary>One app, and what it takes.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="version">Null for the newest.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The version that was asked for.</returns>
    [Operation("apps.get", "getApp")]
    public Task<App> GetAsync(string? ns, string name, int? version = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "apps", name).With("version", version)), SdkJson.Default.App, cancellationToken),
            cancellationToken);

    /// <summary>Starts an app and returns at once.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the app.</param>
    /// <param name="request">Its inputs; null for none.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run.</returns>
    /// <exception cref="MaitentoException"><c>badField</c>: an input is unknown, missing or of another type.</exception>
    [Operation("apps.start", "startAppRun")]
    public Task<AppRun> StartAsync(string? ns, string name, AppStartRequest? request = null, CancellationToken cancellationToken = default)
    {
        request ??= new AppStartRequest();
        return _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Keyed(
                    new ApiPath("namespaces", scope, "apps", name, "runs"), request, SdkJson.Default.AppStartRequest, request.IdempotencyKey),
                SdkJson.Default.AppRun, cancellationToken),
            cancellationToken);
    }

    /// <summary>Runs an app of the default namespace with texts as inputs: see <see cref="RunAsync(string?, string, AppStartRequest, CancellationToken)"/>.</summary>
    /// <param name="name">Of the app.</param>
    /// <param name="inputs">By the names of the parameters of <c>main</c>; null for none.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, with what it printed.</returns>
    public Task<AppRun> RunAsync(
        string name, IReadOnlyDictionary<string, string>? inputs = null, CancellationToken cancellationToken = default) =>
        RunAsync(null, name, new AppStartRequest { Inputs = Texts(inputs) }, cancellationToken);

    /// <summary>Runs an app with texts as inputs: see <see cref="RunAsync(string?, string, AppStartRequest, CancellationToken)"/>.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the app.</param>
    /// <param name="inputs">By the names of the parameters of <c>main</c>; null for none.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, with what it printed.</returns>
    public Task<AppRun> RunAsync(
        string? ns, string name, IReadOnlyDictionary<string, string>? inputs = null, CancellationToken cancellationToken = default) =>
        RunAsync(ns, name, new AppStartRequest { Inputs = Texts(inputs) }, cancellationToken);

    /// <summary>
    /// Starts an app, waits for the end of the run, and returns it whatever its status. To cancel ends the wait, not the run.
    /// </summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the app.</param>
    /// <param name="request">Its inputs, of any type; with <see cref="AppStartRequest.OnConsole"/> what it prints is told as it prints it.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, with what it printed.</returns>
    [Operation("apps.run")]
    public async Task<AppRun> RunAsync(string? ns, string name, AppStartRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var run = await StartAsync(ns, name, request, cancellationToken).ConfigureAwait(false);
        if (request.OnConsole is { } onConsole)
        {
            await foreach (var line in _runs.ConsoleAsync(run.Id, 0, follow: true, cancellationToken).ConfigureAwait(false))
                onConsole(line);
        }
        await _runs.WaitAsync(run.Id, null, cancellationToken).ConfigureAwait(false);
        return await _runs.GetAsync(run.Id, console: true, cancellationToken).ConfigureAwait(false);
    }

    internal static JsonObject? Texts(IReadOnlyDictionary<string, string>? inputs)
    {
        if (inputs is null)
            return null;
        var texts = new JsonObject();
        foreach (var (name, value) in inputs)
            texts[name] = value;
        return texts;
    }
}
