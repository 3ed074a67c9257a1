// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Namespaces and their members.</summary>
public sealed class NamespacesClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;

    internal NamespacesClient(Transport transport, NamespaceScope scope)
    {
        _transport = transport;
        _scope = scope;
    }

    /// <summary>The namespaces that you may see, by name.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("namespaces.list", "listNamespaces")]
    public Task<IReadOnlyList<Namespace>> ListAsync(CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("namespaces"), SdkJson.Default.NamespacePage, cancellationToken);

    /// <summary>One namespace, or null.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Null where there is none that you may see.</returns>
    [Operation("namespaces.find")]
    public Task<Namespace?> GetByNameAsync(string name, CancellationToken cancellationToken = default) =>
        NamespaceScope.FindAsync(GetAsync(name, cancellationToken));

    /// <summary>One namespace.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The namespace.</returns>
    /// <exception cref="MaitentoException"><c>notFound</c>: there is none that you may see.</exception>
    [Operation("namespaces.get", "getNamespace")]
    public Task<Namespace> GetAsync(string name, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("namespaces", name)), SdkJson.Default.Namespace, cancellationToken);

    /// <summary>Makes a namespace. The first that you make becomes your default.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The namespace.</returns>
    /// <exception cref="MaitentoException"><c>alreadyExists</c>: the name is taken.</exception>
    [Operation("namespaces.create", "createNamespace")]
    public Task<Namespace> CreateAsync(string name, CancellationToken cancellationToken = default)
    {
        _scope.Forget();
        return _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Post, new ApiPath("namespaces"), new NameBody(name), SdkJson.Default.NameBody),
            SdkJson.Default.Namespace, cancellationToken);
    }

    /// <summary>Removes an empty namespace.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    /// <exception cref="MaitentoException"><c>conflict</c>: it is not empty; the message lists what is in it.</exception>
    [Operation("namespaces.delete", "deleteNamespace")]
    public Task DeleteAsync(string name, CancellationToken cancellationToken = default)
    {
        _scope.Forget();
        return _transport.DoAsync(ApiRequest.Delete(new ApiPath("namespaces", name)), cancellationToken);
    }

    /// <summary>Chooses the namespace that is meant where none is named; the server keeps it for you.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>You, with that default.</returns>
    [Operation("namespaces.setDefault", "setDefaultNamespace")]
    public Task<Whoami> SetDefaultAsync(string name, CancellationToken cancellationToken = default)
    {
        _scope.Forget();
        return _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Put, new ApiPath("default-namespace"), new NameBody(name), SdkJson.Default.NameBody),
            SdkJson.Default.Whoami, cancellationToken);
    }

    /// <summary>The users who share a namespace with its owner.</summary>
    /// <param name="name">Of the namespace.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them, without the owner.</returns>
    [Operation("namespaces.listMembers", "listMembers")]
    public Task<IReadOnlyList<Member>> ListMembersAsync(string name, CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("namespaces", name, "members"), SdkJson.Default.MemberPage, cancellationToken);

    /// <summary>Adds a member.</summary>
    /// <param name="name">Of the namespace.</param>
    /// <param name="user">Name of the user.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("namespaces.addMember", "addMember")]
    public Task AddMemberAsync(string name, string user, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(new ApiRequest(HttpMethod.Put, new ApiPath("namespaces", name, "members", user).ToString()), cancellationToken);

    /// <summary>Removes a member. Members may remove themselves.</summary>
    /// <param name="name">Of the namespace.</param>
    /// <param name="user">Name of the user.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("namespaces.removeMember", "removeMember")]
    public Task RemoveMemberAsync(string name, string user, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(ApiRequest.Delete(new ApiPath("namespaces", name, "members", user)), cancellationToken);
}
