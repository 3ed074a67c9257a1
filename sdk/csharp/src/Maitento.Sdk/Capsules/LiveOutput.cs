// SPDX-License-Identifier: Apache-2.0
using System.Threading.Channels;

namespace Maitento.Sdk.Capsules;

/// <summary>Both streams of a command as one, each in its own order.</summary>
internal static class LiveOutput
{
    private const int Unread = 16;

    internal static async IAsyncEnumerable<CommandOutput> MergeAsync(
        IAsyncEnumerable<CommandOutput> one, IAsyncEnumerable<CommandOutput> two,
        [System.Runtime.CompilerServices.EnumeratorCancellation] CancellationToken cancellation)
    {
        using var stop = CancellationTokenSource.CreateLinkedTokenSource(cancellation);
        var channel = Channel.CreateBounded<CommandOutput>(Unread);
        var both = Task.WhenAll(PumpAsync(one, channel.Writer, stop), PumpAsync(two, channel.Writer, stop));
        _ = both.ContinueWith(
            done => channel.Writer.TryComplete(done.Exception?.InnerException), CancellationToken.None, TaskContinuationOptions.None, TaskScheduler.Default);
        try
        {
            await foreach (var piece in channel.Reader.ReadAllAsync(cancellation).ConfigureAwait(false))
                yield return piece;
        }
        finally
        {
            await stop.CancelAsync().ConfigureAwait(false);
            await both.ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    private static async Task PumpAsync(IAsyncEnumerable<CommandOutput> from, ChannelWriter<CommandOutput> to, CancellationTokenSource stop)
    {
        try
        {
            await foreach (var piece in from.WithCancellation(stop.Token).ConfigureAwait(false))
                await to.WriteAsync(piece, stop.Token).ConfigureAwait(false);
        }
        catch
        {
            await stop.CancelAsync().ConfigureAwait(false); // one without the other is nothing whole
            throw;
        }
    }
}
