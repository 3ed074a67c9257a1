// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using Maitento.Sdk.Http;

namespace Maitento.Sdk.Capsules;

/// <summary>
/// Reads one stream of a command, and goes on where it was after a cut. The end of a body proves nothing: when following, the reading ends
/// after the command's record has said that it has ended.
/// </summary>
internal sealed class OutputReader(
    Transport transport, string run, string command, CommandStream stream, Func<CancellationToken, Task<bool>> hasEnded)
{
    private const int Piece = 1 << 16;

    /// <summary>Nothing comes where nothing is printed, and nothing comes over a dead connection: after so long another one tells.</summary>
    private static readonly TimeSpan Quiet = TimeSpan.FromSeconds(60);

    /// <summary>What is printed, from a byte on, in pieces of whole characters.</summary>
    internal async IAsyncEnumerable<CommandOutput> ReadAsync(
        long from, bool follow, [EnumeratorCancellation] CancellationToken cancellation)
    {
        var held = Array.Empty<byte>(); // the beginning of a character whose rest has not come
        var end = from;
        await foreach (var (offset, bytes) in PiecesAsync(from, follow, cancellation).ConfigureAwait(false))
        {
            if (held.Length > 0 && offset != end) // what lies between is not kept any more
            {
                yield return new CommandOutput(stream, end - held.Length, held);
                held = [];
            }
            byte[] all = held.Length == 0 ? bytes : [.. held, .. bytes];
            end = offset + bytes.Length;
            var unfinished = Characters.Unfinished(all);
            held = unfinished == 0 ? [] : all[^unfinished..];
            if (all.Length > unfinished)
                yield return new CommandOutput(stream, end - all.Length, all.AsMemory(0, all.Length - unfinished));
        }
        if (held.Length > 0)
            yield return new CommandOutput(stream, end - held.Length, held);
    }

    private async IAsyncEnumerable<(long Offset, byte[] Bytes)> PiecesAsync(
        long from, bool follow, [EnumeratorCancellation] CancellationToken cancellation)
    {
        var patience = Patience.OfRequests(transport.Patience);
        var at = from;
        var isLast = !follow;
        while (true)
        {
            var asked = Stopwatch.GetTimestamp();
            var before = at;
            using var watch = new Watchdog(Quiet, cancellation);
            var (answer, cut) = await OpenAsync(at, follow, watch).ConfigureAwait(false);
            using (answer)
            {
                at = answer is null ? at : OffsetOf(answer, at);
                while (answer is not null && cut is null)
                {
                    (var bytes, cut) = await NextAsync(answer, watch).ConfigureAwait(false);
                    if (bytes.Length == 0)
                        break;
                    yield return (at, bytes);
                    at += bytes.Length;
                }
            }
            if (cut is not null)
            {
                if (at != before)
                    patience.Renew();
                await Task.Delay(patience.After(cut, asked), cancellation).ConfigureAwait(false);
                continue;
            }
            if (isLast)
                yield break;
            isLast = await hasEnded(cancellation).ConfigureAwait(false);
            patience.Renew();
            if (!isLast && Stopwatch.GetElapsedTime(asked) < TimeSpan.FromMilliseconds(200))
                await Task.Delay(TimeSpan.FromMilliseconds(500), cancellation).ConfigureAwait(false);
        }
    }

    private async Task<(HttpResponseMessage? Answer, MaitentoException? Cut)> OpenAsync(long at, bool follow, Watchdog watch)
    {
        var path = new ApiPath("capsule-runs", run, "commands", command, "output")
            .With("stream", stream == CommandStream.Error ? "error" : "standard").With("from", at).With("follow", follow);
        try
        {
            return (await transport.OpenAsync(new ApiRequest(HttpMethod.Get, path.ToString()) { IsLong = true }, watch).ConfigureAwait(false), null);
        }
        catch (MaitentoException error) when (Transport.Passes(error) && transport.WasReached)
        {
            return (null, error);
        }
    }

    private async Task<(byte[] Bytes, MaitentoException? Cut)> NextAsync(HttpResponseMessage answer, Watchdog watch)
    {
        try
        {
            watch.Feed();
            var body = await answer.Content.ReadAsStreamAsync(watch.Token).ConfigureAwait(false);
            var buffer = new byte[Piece];
            var count = await body.ReadAsync(buffer, watch.Token).ConfigureAwait(false);
            watch.Pause();
            return (buffer[..count], null);
        }
        catch (Exception error) when (error is IOException or HttpRequestException or OperationCanceledException)
        {
            watch.ThrowIfCallerCancelled();
            return ([], transport.Broken(watch.Translate(error), wasSent: true));
        }
    }

    private static long OffsetOf(HttpResponseMessage answer, long asked) =>
        answer.Headers.TryGetValues("X-Maitento-Offset", out var values)
        && long.TryParse(values.First(), NumberStyles.None, CultureInfo.InvariantCulture, out var offset) ? offset : asked;
}
