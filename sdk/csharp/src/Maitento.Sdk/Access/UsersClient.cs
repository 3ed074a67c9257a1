// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Users of the server, for administrators.</summary>
public sealed class UsersClient
{
    private readonly Transport _transport;

    internal UsersClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>All users.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("users.list", "listUsers")]
    public Task<IReadOnlyList<User>> ListAsync(CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("users"), SdkJson.Default.UserPage, cancellationToken);

    /// <summary>Makes a user, with a first API key; not from inside a capsule.</summary>
    /// <param name="name">His name.</param>
    /// <param name="role"><c>user</c> (where it is null) or <c>admin</c>.</param>
    /// <param name="expires">When the key ends; null for never.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The user, with the key, shown this once.</returns>
    [Operation("users.create", "createUser")]
    public Task<NewUser> CreateAsync(
        string name, string? role = null, DateTimeOffset? expires = null, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Post, new ApiPath("users"), new NewUserBody(name, role, Times.Format(expires)), SdkJson.Default.NewUserBody),
            SdkJson.Default.NewUser, cancellationToken);

    /// <summary>Removes a user.</summary>
    /// <param name="name">His name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    /// <exception cref="MaitentoException"><c>conflict</c>: he still owns namespaces.</exception>
    [Operation("users.delete", "deleteUser")]
    public Task DeleteAsync(string name, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(ApiRequest.Delete(new ApiPath("users", name)), cancellationToken);
}
