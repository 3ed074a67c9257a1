// SPDX-License-Identifier: Apache-2.0
using System.Text;
using Maitento.Sdk.Access;
using Maitento.Sdk.Files;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>
/// The files of a file system, or of a run. Paths of a file system begin with <c>/</c>; those of a run are as its programs write them, and
/// relative ones begin at the user's home. Any name is fine, and an item of a list may be given in place of a path.
/// </summary>
public sealed class MaitentoFiles
{
    private readonly Transport _transport;
    private readonly Func<string, string[]> _parts;
    private readonly NamespaceScope? _scope;
    private readonly string? _ns;
    private readonly string? _user;

    private MaitentoFiles(Transport transport, Func<string, string[]> parts, NamespaceScope? scope, string? ns, string? user)
    {
        _transport = transport;
        _parts = parts;
        _scope = scope;
        _ns = ns;
        _user = user;
    }

    internal static MaitentoFiles OfFileSystem(Transport transport, string id) =>
        new(transport, what => ["vfs", id, what], null, null, null);

    internal static MaitentoFiles OfFileSystem(Transport transport, NamespaceScope scope, string? ns, string name) =>
        new(transport, what => ["vfs", name, what], scope, ns, null);

    internal static MaitentoFiles OfRun(Transport transport, string run, string? user) =>
        new(transport, what => what == "files" ? ["capsule-runs", run, "files"] : ["capsule-runs", run, "files", what], null, null, user);

    /// <summary>Reads a file.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its content.</returns>
    [Operation("files.read", "getFile")]
    [Operation("files.read", "getFileById")]
    [Operation("files.read", "getRunFile")]
    public async Task<byte[]> ReadAsync(FilePath path, CancellationToken cancellationToken = default)
    {
        using var content = new MemoryStream();
        await DownloadAsync(path, content, null, cancellationToken).ConfigureAwait(false);
        return content.ToArray();
    }

    /// <summary>Reads a file of UTF-8 text. Bytes that are no UTF-8 become U+FFFD.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Its content, with all that is in it.</returns>
    [Operation("files.readText")]
    public async Task<string> ReadTextAsync(FilePath path, CancellationToken cancellationToken = default) =>
        Encoding.UTF8.GetString(await ReadAsync(path, cancellationToken).ConfigureAwait(false));

    /// <summary>
    /// Reads a file into a stream, piece by piece. A connection that breaks is made again, and the reading goes on where it was; a file
    /// that became another meanwhile is an error, <c>conflict</c>.
    /// </summary>
    /// <param name="path">Of the file.</param>
    /// <param name="to">Where the content goes.</param>
    /// <param name="progress">Is told how many bytes came so far.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>How many bytes it is.</returns>
    [Operation("files.download")]
    public Task<long> DownloadAsync(
        FilePath path, Stream to, IProgress<long>? progress = null, CancellationToken cancellationToken = default) =>
        CallAsync(
            scope => new Download(_transport, () => At(scope, "files").WithEncoded("path", path.ForQuery()), to, progress).RunAsync(cancellationToken),
            cancellationToken);

    /// <summary>Reads a file into a local one, piece by piece, as <see cref="DownloadAsync(FilePath, Stream, IProgress{long}, CancellationToken)"/> does.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="toFile">The local file. It is written anew; where the call fails, what came so far is in it.</param>
    /// <param name="progress">Is told how many bytes came so far.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>How many bytes it is.</returns>
    public async Task<long> DownloadAsync(
        FilePath path, string toFile, IProgress<long>? progress = null, CancellationToken cancellationToken = default)
    {
        var file = new FileStream(toFile, FileMode.Create, FileAccess.Write, FileShare.Read, 0, useAsync: true);
        await using (file.ConfigureAwait(false))
            return await DownloadAsync(path, file, progress, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Writes a file: as a whole, or not at all. Folders on the way are made.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="content">Its new content.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    [Operation("files.write", "putFile")]
    [Operation("files.write", "putFileById")]
    [Operation("files.write", "putRunFile")]
    public Task<FileEntry> WriteAsync(FilePath path, ReadOnlyMemory<byte> content, CancellationToken cancellationToken = default) =>
        PutAsync(path, () => UploadContent.Of(content), once: false, cancellationToken);

    /// <summary>Writes a text to a file, as UTF-8: as a whole, or not at all. Folders on the way are made.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="text">Its new content.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    [Operation("files.writeText")]
    public Task<FileEntry> WriteTextAsync(FilePath path, string text, CancellationToken cancellationToken = default) =>
        WriteAsync(path, Encoding.UTF8.GetBytes(text), cancellationToken);

    /// <summary>
    /// Writes a file from a stream, piece by piece, from where the stream is to its end: as a whole, or not at all. Where the connection
    /// breaks, a stream that can seek is sent again from there; another one cannot, and that is an error.
    /// </summary>
    /// <param name="path">Of the file.</param>
    /// <param name="from">The new content. It is not closed.</param>
    /// <param name="progress">Is told how many bytes were sent so far; it begins anew where the content is sent again.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    [Operation("files.upload")]
    public Task<FileEntry> UploadAsync(
        FilePath path, Stream from, IProgress<long>? progress = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(from);
        var begin = from.CanSeek ? from.Position : 0;
        return PutAsync(path, () => new UploadContent(from, begin, progress), once: !from.CanSeek, cancellationToken);
    }

    /// <summary>Writes a file from a local one, as <see cref="UploadAsync(FilePath, Stream, IProgress{long}, CancellationToken)"/> does.</summary>
    /// <param name="path">Of the file.</param>
    /// <param name="fromFile">The local file.</param>
    /// <param name="progress">Is told how many bytes were sent so far.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The file.</returns>
    public async Task<FileEntry> UploadAsync(
        FilePath path, string fromFile, IProgress<long>? progress = null, CancellationToken cancellationToken = default)
    {
        var file = new FileStream(fromFile, FileMode.Open, FileAccess.Read, FileShare.ReadWrite, 0, useAsync: true);
        await using (file.ConfigureAwait(false))
            return await UploadAsync(path, file, progress, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>What stands at a path.</summary>
    /// <param name="path">The path. In a file system a link is told as such; in a run it is followed.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What stands there.</returns>
    [Operation("files.stat", "getStat")]
    [Operation("files.stat", "getStatById")]
    [Operation("files.stat", "getRunStat")]
    public Task<FileEntry> StatAsync(FilePath path, CancellationToken cancellationToken = default) =>
        CallAsync(
            scope => _transport.JsonAsync(
                ApiRequest.Get(At(scope, "stat").WithEncoded("path", path.ForQuery())), SdkJson.Default.FileEntry, cancellationToken),
            cancellationToken);

    /// <summary>What is in a folder, in the order of the names' bytes.</summary>
    /// <param name="path">The folder; null for the root of a file system, or the home of the user in a run.</param>
    /// <param name="recursive">With all folders below it.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of it.</returns>
    [Operation("files.list", "listFiles")]
    [Operation("files.list", "listFilesById")]
    [Operation("files.list", "listRunFiles")]
    public Task<IReadOnlyList<FileEntry>> ListAsync(
        FilePath? path = null, bool recursive = false, CancellationToken cancellationToken = default) =>
        CallAsync(
            scope =>
            {
                var at = At(scope, "list").With("recursive", recursive);
                return _transport.PagesAsync(
                    path is { } folder ? at.WithEncoded("path", folder.ForQuery()) : at, SdkJson.Default.FileEntryPage, cancellationToken);
            },
            cancellationToken);

    /// <summary>Makes a folder.</summary>
    /// <param name="path">Of the folder.</param>
    /// <param name="parents">Folders on the way too, and no error when it is there.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The folder.</returns>
    [Operation("files.mkdir", "makeFolder")]
    [Operation("files.mkdir", "makeFolderById")]
    [Operation("files.mkdir", "makeRunFolder")]
    public Task<FileEntry> MakeFolderAsync(FilePath path, bool parents = true, CancellationToken cancellationToken = default)
    {
        var body = new MakeFolderBody(path.ToString(), parents, Flag(path.IsEscaped), _user);
        return CallAsync(
            scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, At(scope, "mkdir", forBody: true), body, SdkJson.Default.MakeFolderBody, repeatsAlike: parents),
                SdkJson.Default.FileEntry, cancellationToken),
            cancellationToken);
    }

    /// <summary>Moves or renames.</summary>
    /// <param name="from">What there is.</param>
    /// <param name="to">Where it is to be.</param>
    /// <param name="replace">What stands there may be replaced.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What was moved, at its new place.</returns>
    [Operation("files.move", "moveFile")]
    [Operation("files.move", "moveFileById")]
    [Operation("files.move", "moveRunFile")]
    public Task<FileEntry> MoveAsync(FilePath from, FilePath to, bool replace = false, CancellationToken cancellationToken = default)
    {
        var escaped = from.IsEscaped || to.IsEscaped;
        var body = new MoveBody(from.ForBody(escaped), to.ForBody(escaped), replace, Flag(escaped), _user);
        return CallAsync(
            scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, At(scope, "move", forBody: true), body, SdkJson.Default.MoveBody),
                SdkJson.Default.FileEntry, cancellationToken),
            cancellationToken);
    }

    /// <summary>Makes a symbolic link.</summary>
    /// <param name="path">Of the link.</param>
    /// <param name="target">Where it leads; in a file system that stays within it.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The link.</returns>
    [Operation("files.link", "makeLink")]
    [Operation("files.link", "makeLinkById")]
    [Operation("files.link", "makeRunLink")]
    public Task<FileEntry> LinkAsync(FilePath path, FilePath target, CancellationToken cancellationToken = default)
    {
        var escaped = path.IsEscaped || target.IsEscaped;
        var body = new LinkBody(path.ForBody(escaped), target.ForBody(escaped), Flag(escaped), _user);
        return CallAsync(
            scope => _transport.JsonAsync(
                ApiRequest.Json(HttpMethod.Post, At(scope, "link", forBody: true), body, SdkJson.Default.LinkBody),
                SdkJson.Default.FileEntry, cancellationToken),
            cancellationToken);
    }

    /// <summary>Removes a file, a link, or a folder.</summary>
    /// <param name="path">What there is.</param>
    /// <param name="recursive">A folder with all that is in it; else one that is not empty is an error, <c>notEmpty</c>.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("files.delete", "deleteFile")]
    [Operation("files.delete", "deleteFileById")]
    [Operation("files.delete", "deleteRunFile")]
    public Task DeleteAsync(FilePath path, bool recursive = false, CancellationToken cancellationToken = default) =>
        CallAsync(
            scope => _transport.DoneAsync(
                ApiRequest.Delete(At(scope, "files").WithEncoded("path", path.ForQuery()).With("recursive", recursive)), cancellationToken),
            cancellationToken);

    private static bool? Flag(bool value) => value ? true : null;

    private Task<FileEntry> PutAsync(FilePath path, Func<HttpContent> content, bool once, CancellationToken cancellation) =>
        CallAsync(
            scope => _transport.JsonAsync(
                ApiRequest.Bytes(HttpMethod.Put, At(scope, "files").WithEncoded("path", path.ForQuery()), content, once),
                SdkJson.Default.FileEntry, cancellation),
            cancellation);

    private Task<T> CallAsync<T>(Func<string?, Task<T>> call, CancellationToken cancellation) =>
        _scope is null ? call(null) : _scope.CallAsync(_ns, call, cancellation);

    /// <summary>The address of something that can be done with files, with the user who does it.</summary>
    private ApiPath At(string? scope, string what, bool forBody = false)
    {
        var path = scope is null ? new ApiPath(_parts(what)) : new ApiPath(["namespaces", scope, .. _parts(what)]);
        return forBody ? path : path.With("user", _user);
    }
}
