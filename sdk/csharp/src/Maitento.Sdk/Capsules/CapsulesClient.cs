// SPDX-License-Identifier: Apache-2.0
using Maitento.Entities.Capsules;
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Capsules: recipes of machines. <see cref="CapsuleProcessesClient"/> has the machines.</summary>
public sealed class CapsulesClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;
    private readonly CapsuleProcessesClient _runs;

    internal CapsulesClient(Transport transport, NamespaceScope scope, CapsuleProcessesClient runs)
    {
        _transport = transport;
        _scope = scope;
        _runs = runs;
    }

    /// <summary>The capsules of a namespace, each with its newest version.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("capsules.list", "listCapsules")]
    public Task<IReadOnlyList<ResourceItem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "capsules"), SdkJson.Default.ResourceItemPage, cancellationToken),
            cancellationToken);

    /// <summary>One capsule, the server's defaults filled in.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="version">Null for the newest.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The version that was asked for.</returns>
    [Operation("capsules.get", "getCapsule")]
    public Task<Capsule> GetAsync(string? ns, string name, int? version = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "capsules", name).With("version", version)), SdkJson.Default.Capsule, cancellationToken),
            cancellationToken);

    /// <summary>
    /// Starts a capsule, waits for the end of the run, and returns it whatever its status. To cancel ends the wait, not the run.
    /// </summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the capsule.</param>
    /// <param name="request">What the start adds; null for nothing.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended.</returns>
    [Operation("capsules.run")]
    public async Task<CapsuleRun> RunAsync(
        string? ns, string name, CapsuleProcessStartRequest? request = null, CancellationToken cancellationToken = default)
    {
        var run = await _runs.StartAsync(ns, name, request, cancellationToken).ConfigureAwait(false);
        return await _runs.WaitAsync(run.Id, null, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Checks a start, and says what it would do.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the capsule.</param>
    /// <param name="request">What the start would add; null for nothing.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The plan.</returns>
    [Operation("capsules.plan")]
    public Task<RunPlan> PlanAsync(
        string? ns, string name, CapsuleProcessStartRequest? request = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Json(
                    HttpMethod.Post, new ApiPath("namespaces", scope, "capsules", name, "runs").With("dryRun", true),
                    request ?? new CapsuleProcessStartRequest(), SdkJson.Default.CapsuleProcessStartRequest, repeatsAlike: true),
                SdkJson.Default.RunPlan, cancellationToken),
            cancellationToken);
}
