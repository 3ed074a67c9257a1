// SPDX-License-Identifier: Apache-2.0
using System.Runtime.CompilerServices;
using Maitento.Sdk.Files;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Shells on terminals in runs. They are no commands: nothing of them is kept.</summary>
public sealed class ShellsClient
{
    private readonly Transport _transport;

    internal ShellsClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>Starts a login shell. Read its output within 15 seconds: a shell without a reader for so long is hung up.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="user">Whose shell; null for <c>maitento</c>.</param>
    /// <param name="term">The kind of terminal; null for <c>xterm</c>.</param>
    /// <param name="columns">Of the terminal, 1 to 4,096; null for 80.</param>
    /// <param name="rows">Of the terminal, 1 to 4,096; null for 24.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The shell.</returns>
    [Operation("shells.start", "startShell")]
    public Task<Shell> StartAsync(
        string runId, string? user = null, string? term = null, int? columns = null, int? rows = null, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Json(
                HttpMethod.Post, new ApiPath("capsule-runs", runId, "shells"), new ShellBody(user, term, columns, rows), SdkJson.Default.ShellBody),
            SdkJson.Default.Shell, cancellationToken);

    /// <summary>The shells of a run that live, and for five minutes those that have ended; the newest first.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("shells.list", "listShells")]
    public async Task<IReadOnlyList<Shell>> ListAsync(string runId, CancellationToken cancellationToken = default) =>
        (await _transport.JsonAsync(
            ApiRequest.Get(new ApiPath("capsule-runs", runId, "shells")), SdkJson.Default.ShellList, cancellationToken).ConfigureAwait(false)).Items;

    /// <summary>One shell as it is now.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The shell.</returns>
    [Operation("shells.get", "getShell")]
    public Task<Shell> GetAsync(string runId, string shellId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(At(runId, shellId)), SdkJson.Default.Shell, cancellationToken);

    /// <summary>Hangs a shell up.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it was told.</returns>
    [Operation("shells.close", "closeShell")]
    public Task CloseAsync(string runId, string shellId, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(ApiRequest.Delete(At(runId, shellId)), cancellationToken);

    /// <summary>
    /// What the terminal shows, from now on until the shell ends. There is one reader: another takes its place. A connection that breaks is
    /// an error; what was on its way is lost then.
    /// </summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="cancellationToken">Ends the reading; a shell that nobody reads is hung up after 15 seconds.</param>
    /// <returns>Bytes, as they come.</returns>
    [Operation("shells.output", "getShellOutput")]
    public async IAsyncEnumerable<ReadOnlyMemory<byte>> OutputAsync(
        string runId, string shellId, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        using var watch = new Watchdog(ApiRequest.Ordinary, cancellationToken);
        using var answer = await _transport.OpenAsync(
            new ApiRequest(HttpMethod.Get, At(runId, shellId, "output").ToString()) { IsLong = true }, watch).ConfigureAwait(false);
        watch.Pause(); // a terminal may be quiet for long
        var body = await answer.Content.ReadAsStreamAsync(cancellationToken).ConfigureAwait(false);
        while (true)
        {
            var buffer = new byte[1 << 14];
            int count;
            try
            {
                count = await body.ReadAsync(buffer, cancellationToken).ConfigureAwait(false);
            }
            catch (Exception error) when (error is IOException or HttpRequestException)
            {
                throw _transport.Broken(error, wasSent: true);
            }
            if (count == 0)
                yield break;
            yield return buffer.AsMemory(0, count);
        }
    }

    /// <summary>Types into a shell. Ctrl-C is the byte 3.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="input">What is typed.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When all of it is on its way.</returns>
    [Operation("shells.type", "typeIntoShell")]
    public Task TypeAsync(string runId, string shellId, ReadOnlyMemory<byte> input, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(
            ApiRequest.Bytes(HttpMethod.Post, At(runId, shellId, "input"), () => UploadContent.Of(input), once: true), cancellationToken);

    /// <summary>Types a text into a shell.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="input">What is typed; a line ends with <c>\n</c>.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When all of it is on its way.</returns>
    public Task TypeAsync(string runId, string shellId, string input, CancellationToken cancellationToken = default) =>
        TypeAsync(runId, shellId, System.Text.Encoding.UTF8.GetBytes(input), cancellationToken);

    /// <summary>Gives a shell's terminal another size.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="shellId">Of the shell.</param>
    /// <param name="columns">1 to 4,096.</param>
    /// <param name="rows">1 to 4,096.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it has that size.</returns>
    [Operation("shells.resize", "resizeShell")]
    public Task ResizeAsync(string runId, string shellId, int columns, int rows, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(
            ApiRequest.Json(HttpMethod.Put, At(runId, shellId, "size"), new SizeBody(columns, rows), SdkJson.Default.SizeBody), cancellationToken);

    private static ApiPath At(string runId, string shellId) => new("capsule-runs", runId, "shells", shellId);

    private static ApiPath At(string runId, string shellId, string what) => new("capsule-runs", runId, "shells", shellId, what);
}
