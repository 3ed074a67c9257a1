// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Prompts: tasks with places for inputs.</summary>
public sealed class PromptsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;

    internal PromptsClient(Transport transport, NamespaceScope scope)
    {
        _transport = transport;
        _scope = scope;
    }

    /// <summary>The prompts of a namespace, each with its newest version.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("prompts.list", "listPrompts")]
    public Task<IReadOnlyList<ResourceItem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "prompts"), SdkJson.Default.ResourceItemPage, cancellationToken),
            cancellationToken);

    /// <summary>One of them, with its definition.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="version">Null for the newest.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The version that was asked for.</returns>
    [Operation("prompts.get", "getPrompt")]
    public Task<Resource> GetAsync(string? ns, string name, int? version = null, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "prompts", name).With("version", version)), SdkJson.Default.Resource, cancellationToken),
            cancellationToken);
}
