// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Agents: a model and how it is told to work.</summary>
public sealed class AgentsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;

    internal AgentsClient(Transport transport, NamespaceScope scope)
    {
        _transport = transport;
        _scope = scope;
    }

    /// <summary>The agents of a namespace, each with its newest version.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("agents.list", "listAgents")]
    public Task<IReadOnlyList<ResourceItem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "agents"), SdkJson.Default.ResourceItemPage, cancellationToken),
            cancellationToken);

    /// <summary>One of them, with its definition.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="version">Null for the newest.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The version that was asked for.</returns>
    [Operation("agents.get", "getAgent")]
    public Task<Resource> GetAsync(string? ns, string name, int? version = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "agents", name).With("version", version)), SdkJson.Default.Resource, cancellationToken),
            cancellationToken);
}
