// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Values that capsules mount. They are given, and never come back.</summary>
public sealed class SecretsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;

    internal SecretsClient(Transport transport, NamespaceScope scope)
    {
        _transport = transport;
        _scope = scope;
    }

    /// <summary>The secrets of a namespace, without their values.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("secrets.list", "listSecrets")]
    public Task<IReadOnlyList<Secret>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "secrets"), SdkJson.Default.SecretPage, cancellationToken),
            cancellationToken);

    /// <summary>One secret, or null.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Null where there is none.</returns>
    [Operation("secrets.find")]
    public Task<Secret?> GetByNameAsync(string? ns, string name, CancellationToken cancellationToken = default) =>
        NamespaceScope.FindAsync(GetAsync(ns, name, cancellationToken));

    /// <summary>One secret, without its value.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The secret.</returns>
    [Operation("secrets.get", "getSecret")]
    public Task<Secret> GetAsync(string? ns, string name, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(ApiRequest.Get(new ApiPath("namespaces", scope, "secrets", name)), SdkJson.Default.Secret, cancellationToken),
            cancellationToken);

    /// <summary>Makes a secret of a text, which is kept as UTF-8.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="value">1 to 65,536 bytes.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The secret.</returns>
    /// <exception cref="MaitentoException"><c>alreadyExists</c>: the name is taken.</exception>
    [Operation("secrets.create", "createSecret")]
    public Task<Secret> CreateAsync(string? ns, string name, string value, CancellationToken cancellationToken = default) =>
        CreateAsync(ns, Value(name, value), cancellationToken);

    /// <summary>Makes a secret of bytes.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="value">1 to 65,536 bytes.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The secret.</returns>
    /// <exception cref="MaitentoException"><c>alreadyExists</c>: the name is taken.</exception>
    public Task<Secret> CreateAsync(string? ns, string name, ReadOnlyMemory<byte> value, CancellationToken cancellationToken = default) =>
        CreateAsync(ns, Value(name, value), cancellationToken);

    /// <summary>Gives a secret another value, a text. Runs that live keep the one they were started with.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="value">1 to 65,536 bytes.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The secret.</returns>
    [Operation("secrets.set", "setSecret")]
    public Task<Secret> SetAsync(string? ns, string name, string value, CancellationToken cancellationToken = default) =>
        SetAsync(ns, name, Value(null, value), cancellationToken);

    /// <summary>Gives a secret another value, bytes. Runs that live keep the one they were started with.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="value">1 to 65,536 bytes.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The secret.</returns>
    public Task<Secret> SetAsync(string? ns, string name, ReadOnlyMemory<byte> value, CancellationToken cancellationToken = default) =>
        SetAsync(ns, name, Value(null, value), cancellationToken);

    /// <summary>Removes a secret.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="force">Also where a live run mounts it or a deployed capsule names it; else that is a <c>conflict</c> that lists them.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("secrets.delete", "deleteSecret")]
    public Task DeleteAsync(string? ns, string name, bool force = false, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.DoneAsync(
                ApiRequest.Delete(new ApiPath("namespaces", scope, "secrets", name).With("force", force)), cancellationToken),
            cancellationToken);

    private static SecretBody Value(string? name, string value) => new(name, value, null);

    private static SecretBody Value(string? name, ReadOnlyMemory<byte> value) => new(name, null, Convert.ToBase64String(value.Span));

    private Task<Secret> CreateAsync(string? ns, SecretBody body, CancellationToken cancellationToken) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, new ApiPath("namespaces", scope, "secrets"), body, SdkJson.Default.SecretBody),
                SdkJson.Default.Secret, cancellationToken),
            cancellationToken);

    private Task<Secret> SetAsync(string? ns, string name, SecretBody body, CancellationToken cancellationToken) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Put, new ApiPath("namespaces", scope, "secrets", name), body, SdkJson.Default.SecretBody),
                SdkJson.Default.Secret, cancellationToken),
            cancellationToken);
}
