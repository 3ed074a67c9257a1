// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Access;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>File systems, which capsules mount and which outlive them, and what is in them.</summary>
public sealed class VirtualFileSystemsClient
{
    private readonly Transport _transport;
    private readonly NamespaceScope _scope;

    internal VirtualFileSystemsClient(Transport transport, NamespaceScope scope)
    {
        _transport = transport;
        _scope = scope;
    }

    /// <summary>The file systems of a namespace.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("vfs.list", "listVfs")]
    public Task<IReadOnlyList<VirtualFileSystem>> ListAsync(string? ns, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.PagesAsync(new ApiPath("namespaces", scope, "vfs"), SdkJson.Default.VirtualFileSystemPage, cancellationToken),
            cancellationToken);

    /// <summary>One file system, or null.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Null where there is none.</returns>
    [Operation("vfs.findByName")]
    public Task<VirtualFileSystem?> GetByNameAsync(string? ns, string name, CancellationToken cancellationToken = default) =>
        NamespaceScope.FindAsync(GetAsync(ns, name, cancellationToken));

    /// <summary>One file system, with how much it holds.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file system.</returns>
    [Operation("vfs.get", "getVfs")]
    public Task<VirtualFileSystem> GetAsync(string? ns, string name, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Get(new ApiPath("namespaces", scope, "vfs", name)), SdkJson.Default.VirtualFileSystem, cancellationToken),
            cancellationToken);

    /// <summary>Makes a file system.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file system.</returns>
    /// <exception cref="MaitentoException"><c>alreadyExists</c>: the name is taken.</exception>
    [Operation("vfs.create", "createVfs")]
    public Task<VirtualFileSystem> CreateAsync(string? ns, string name, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, new ApiPath("namespaces", scope, "vfs"), new NameBody(name), SdkJson.Default.NameBody),
                SdkJson.Default.VirtualFileSystem, cancellationToken),
            cancellationToken);

    /// <summary>Says how much a file system may hold; for administrators.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="limit">For example <c>50GiB</c>.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file system.</returns>
    [Operation("vfs.setLimit", "changeVfs")]
    public Task<VirtualFileSystem> SetLimitAsync(string? ns, string name, string limit, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.JsonAsync(
                ApiRequest.Json(
                    HttpMethod.Patch, new ApiPath("namespaces", scope, "vfs", name), new LimitBody(limit), SdkJson.Default.LimitBody,
                    repeatsAlike: true),
                SdkJson.Default.VirtualFileSystem, cancellationToken),
            cancellationToken);

    /// <summary>Removes a file system and all that is in it.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Its name.</param>
    /// <param name="force">Also where a live run mounts it or a deployed capsule names it; else that is a <c>conflict</c> that lists them.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("vfs.delete", "deleteVfs")]
    public Task DeleteAsync(string? ns, string name, bool force = false, CancellationToken cancellationToken = default) =>
        _scope.CallAsync(
            ns, scope => _transport.DoneAsync(
                ApiRequest.Delete(new ApiPath("namespaces", scope, "vfs", name).With("force", force)), cancellationToken),
            cancellationToken);

    /// <summary>The files of a file system. Nothing is asked of the server yet.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the file system.</param>
    /// <returns>Its files.</returns>
    public MaitentoFiles Open(string? ns, string name) => MaitentoFiles.OfFileSystem(_transport, _scope, ns, name);

    /// <summary>The files of a file system of which the id is known. Nothing is asked of the server yet.</summary>
    /// <param name="id">Of the file system.</param>
    /// <returns>Its files.</returns>
    public MaitentoFiles OpenById(string id) => MaitentoFiles.OfFileSystem(_transport, id);

    /// <summary>Writes a text to a file, as UTF-8. Folders on the way are made; readers see the old content or the new, never a part.</summary>
    /// <param name="id">Of the file system.</param>
    /// <param name="path">Of the file; it begins with <c>/</c>.</param>
    /// <param name="text">Its new content.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    public Task<FileEntry> WriteTextById(string id, FilePath path, string text, CancellationToken cancellationToken = default) =>
        OpenById(id).WriteTextAsync(path, text, cancellationToken);

    /// <summary>Reads a file of UTF-8 text.</summary>
    /// <param name="id">Of the file system.</param>
    /// <param name="path">Of the file; it begins with <c>/</c>.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its content.</returns>
    public Task<string> ReadTextById(string id, FilePath path, CancellationToken cancellationToken = default) =>
        OpenById(id).ReadTextAsync(path, cancellationToken);

    /// <summary>Writes bytes to a file.</summary>
    /// <param name="id">Of the file system.</param>
    /// <param name="path">Of the file; it begins with <c>/</c>.</param>
    /// <param name="content">Its new content.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    public Task<FileEntry> WriteById(string id, FilePath path, ReadOnlyMemory<byte> content, CancellationToken cancellationToken = default) =>
        OpenById(id).WriteAsync(path, content, cancellationToken);

    /// <summary>Reads a file.</summary>
    /// <param name="id">Of the file system.</param>
    /// <param name="path">Of the file; it begins with <c>/</c>.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its content.</returns>
    public Task<byte[]> ReadById(string id, FilePath path, CancellationToken cancellationToken = default) =>
        OpenById(id).ReadAsync(path, cancellationToken);
}
