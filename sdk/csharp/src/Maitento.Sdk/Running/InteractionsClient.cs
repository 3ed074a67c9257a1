// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Interactions: questions to models. <see cref="InteractionRunsClient"/> has their runs.</summary>
public sealed class InteractionsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;
    private readonly InteractionRunsClient _runs;

    internal InteractionsClient(Transport transport, NamespaceScope scope, InteractionRunsClient runs)
    {
        _transport = transport;
        _scope = scope;
        _runs = runs;
    }

    /// <summary>The interactions of a namespace, each with its newest version.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("interactions.list", "listInteractions")]
    public Task<IReadOnlyList<ResourceItem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(
                new ApiPath("namespaces", scope, "interactions"), SdkJson.Default.ResourceItemPage, cancellationToken),
            cancellationToken);

    /// <summary>One interaction, with its definition.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="version">Null for the newest.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The version that was asked for.</returns>
    [Operation("interactions.get", "getInteraction")]
    public Task<Resource> GetAsync(string? ns, string name, int? version = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "interactions", name).With("version", version)), SdkJson.Default.Resource, cancellationToken),
            cancellationToken);

    /// <summary>Asks the model of an interaction's agent, and returns at once.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the interaction.</param>
    /// <param name="request">Its inputs; null for none.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run.</returns>
    /// <exception cref="MaitentoException"><c>badField</c>: an input is unknown or missing.</exception>
    [Operation("interactions.start", "startInteractionRun")]
    public Task<InteractionRun> StartAsync(
        string? ns, string name, InteractionStartRequest? request = null, CancellationToken cancellationToken = default)
    {
        request ??= new InteractionStartRequest();
        return _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Keyed(
                    new ApiPath("namespaces", scope, "interactions", name, "runs"), request, SdkJson.Default.InteractionStartRequest,
                    request.IdempotencyKey),
                SdkJson.Default.InteractionRun, cancellationToken),
            cancellationToken);
    }

    /// <summary>Runs an interaction of the default namespace with texts as inputs: see <see cref="RunAsync(string?, string, InteractionStartRequest, CancellationToken)"/>.</summary>
    /// <param name="name">Of the interaction.</param>
    /// <param name="inputs">By the names of its inputs; null for none.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended.</returns>
    public Task<InteractionRun> RunAsync(
        string name, IReadOnlyDictionary<string, string>? inputs = null, CancellationToken cancellationToken = default) =>
        RunAsync(null, name, new InteractionStartRequest { Inputs = AppsClient.Texts(inputs) }, cancellationToken);

    /// <summary>Runs an interaction with texts as inputs: see <see cref="RunAsync(string?, string, InteractionStartRequest, CancellationToken)"/>.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the interaction.</param>
    /// <param name="inputs">By the names of its inputs; null for none.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended.</returns>
    public Task<InteractionRun> RunAsync(
        string? ns, string name, IReadOnlyDictionary<string, string>? inputs = null, CancellationToken cancellationToken = default) =>
        RunAsync(ns, name, new InteractionStartRequest { Inputs = AppsClient.Texts(inputs) }, cancellationToken);

    /// <summary>
    /// Asks the model of an interaction's agent, waits for the end of the run, and returns it whatever its status. To cancel ends the
    /// wait, not the run.
    /// </summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the interaction.</param>
    /// <param name="request">Its inputs.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended: <see cref="InteractionRun.Output"/> is the answer.</returns>
    [Operation("interactions.run")]
    public async Task<InteractionRun> RunAsync(
        string? ns, string name, InteractionStartRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var run = await StartAsync(ns, name, request, cancellationToken).ConfigureAwait(false);
        return await _runs.WaitAsync(run.Id, null, cancellationToken).ConfigureAwait(false);
    }
}
