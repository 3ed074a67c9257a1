// SPDX-License-Identifier: Apache-2.0
using System.Collections.Concurrent;
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;

namespace Maitento.Sdk;

/// <summary>What happens on the server, as it happens.</summary>
public sealed class EventsClient : IAsyncDisposable
{
    private readonly Transport _transport;
    private readonly EndWatch _watch;
    private readonly TimeSpan _silence;
    private readonly ConcurrentDictionary<MaitentoEvents, byte> _open = new();

    internal EventsClient(Transport transport, EndWatch watch, TimeSpan silence)
    {
        _transport = transport;
        _watch = watch;
        _silence = silence;
    }

    /// <summary>
    /// Opens a stream of events. While one without filters is open, everything that waits with this client
    /// (<see cref="CapsuleProcessesClient.RunCommandAndWaitAsync"/> and its kin) is told of ends by it, whether or not you read from it.
    /// A stream that breaks goes on by itself where it was.
    /// </summary>
    /// <param name="options">Which events; null for all from now on.</param>
    /// <param name="cancellationToken">Ends the opening, not the stream.</param>
    /// <returns>The stream; the server has begun it.</returns>
    [Operation("events.open", "streamEvents")]
    public async Task<MaitentoEvents> OpenAsync(EventsOptions? options = null, CancellationToken cancellationToken = default)
    {
        var events = new MaitentoEvents(_transport, _watch, options ?? new EventsOptions(), _silence, closed => _open.TryRemove(closed, out _));
        _open[events] = 0;
        try
        {
            await events.StartAsync(cancellationToken).ConfigureAwait(false);
        }
        catch
        {
            await events.DisposeAsync().ConfigureAwait(false);
            throw;
        }
        return events;
    }

    /// <summary>Closes all streams that are open.</summary>
    /// <returns>When they are closed.</returns>
    public async ValueTask DisposeAsync()
    {
        foreach (var events in _open.Keys)
            await events.DisposeAsync().ConfigureAwait(false);
    }
}
