// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>API keys.</summary>
public sealed class KeysClient
{
    private readonly Transport _transport;

    internal KeysClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>The keys of a user, without their secret part.</summary>
    /// <param name="user">Another user, for administrators; null for yourself.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("keys.list", "listKeys")]
    public Task<IReadOnlyList<ApiKey>> ListAsync(string? user = null, CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("keys").With("user", user), SdkJson.Default.ApiKeyPage, cancellationToken);

    /// <summary>Makes a key; not from inside a capsule.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="expires">When it ends; null for never.</param>
    /// <param name="user">Another user, by administrators; null for yourself.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The key, shown this once.</returns>
    [Operation("keys.create", "createKey")]
    public Task<NewApiKey> CreateAsync(
        string name, DateTimeOffset? expires = null, string? user = null, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Post, new ApiPath("keys"), new NewKeyBody(name, Times.Format(expires), user), SdkJson.Default.NewKeyBody),
            SdkJson.Default.NewApiKey, cancellationToken);

    /// <summary>Revokes a key.</summary>
    /// <param name="id">Of the key.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("keys.delete", "deleteKey")]
    public Task DeleteAsync(string id, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(ApiRequest.Delete(new ApiPath("keys", id)), cancellationToken);
}
