// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;

namespace Maitento.Sdk.Events;

/// <summary>
/// Waits for ends. Where an event stream of the client tells them, it is what wakes; else the server is asked with requests that it
/// answers when something came of it. The record decides: nothing else is ever taken for an end.
/// </summary>
internal sealed class Waiting(EndWatch watch) : IDisposable
{
    /// <summary>Seconds for which one request waits.</summary>
    internal const int Seconds = 20;

    private const int SecondsInTurn = 2;
    private const int Slots = 64;

    /// <summary>A stream that said nothing for so long is not believed blindly.</summary>
    private static readonly TimeSpan LookAnyway = TimeSpan.FromSeconds(30);

    private readonly SemaphoreSlim _slots = new(Slots, Slots);
    private int _inTurn;

    internal EndWatch Watch { get; } = watch;

    /// <summary>How many calls may listen to what their commands print: each has two connections.</summary>
    internal SemaphoreSlim Listeners { get; } = new(Slots, Slots);

    public void Dispose()
    {
        _slots.Dispose();
        Listeners.Dispose();
    }

    /// <summary>The record when it is as wanted, or as it is when the time is over.</summary>
    /// <param name="kind">Of the event that tells it.</param>
    /// <param name="id">Of what is waited for.</param>
    /// <param name="get">Reads the record, with a request that waits so many seconds.</param>
    /// <param name="isDone">Whether the record is as wanted.</param>
    /// <param name="since">The epoch of <see cref="EndWatch"/> in which the caller read the record last; null where he did not.</param>
    /// <param name="timeout">How long to wait; null for ever.</param>
    /// <param name="cancellation">Ends the wait, and nothing else.</param>
    internal async Task<T> UntilAsync<T>(
        string kind, string id, Func<int, CancellationToken, Task<T>> get, Func<T, bool> isDone,
        long? since, TimeSpan? timeout, CancellationToken cancellation)
    {
        var begun = Stopwatch.GetTimestamp();
        TimeSpan? Left() => timeout is { } limit ? Max(limit - Stopwatch.GetElapsedTime(begun), TimeSpan.Zero) : null;
        while (true)
        {
            using var waiter = Watch.Watch(kind, id, since);
            if (waiter is null)
            {
                var record = await AskAsync(get, isDone, Left(), cancellation).ConfigureAwait(false);
                if (isDone(record) || Left() == TimeSpan.Zero)
                    return record;
                continue;
            }
            do
            {
                await SleepAsync(waiter.Woken, Left(), cancellation).ConfigureAwait(false);
                waiter.Rearm();
                var record = await get(0, cancellation).ConfigureAwait(false);
                if (isDone(record) || Left() == TimeSpan.Zero)
                    return record;
            }
            while (Watch.EpochOf(kind) is not null);
            since = null; // no stream any more
        }
    }

    private static TimeSpan Max(TimeSpan one, TimeSpan two) => one > two ? one : two;

    private static async Task SleepAsync(Task woken, TimeSpan? left, CancellationToken cancellation)
    {
        try
        {
            await woken.WaitAsync(left < LookAnyway ? left.Value : LookAnyway, cancellation).ConfigureAwait(false);
        }
        catch (TimeoutException)
        {
            // time to look
        }
    }

    /// <summary>One request that waits. Where many wait they take turns, so that connections stay few.</summary>
    private async Task<T> AskAsync<T>(
        Func<int, CancellationToken, Task<T>> get, Func<T, bool> isDone, TimeSpan? left, CancellationToken cancellation)
    {
        Interlocked.Increment(ref _inTurn);
        try
        {
            await _slots.WaitAsync(cancellation).ConfigureAwait(false);
            try
            {
                var seconds = Volatile.Read(ref _inTurn) > Slots ? SecondsInTurn : Seconds;
                if (left is { } time)
                    seconds = Math.Min(seconds, (int)Math.Ceiling(time.TotalSeconds));
                var asked = Stopwatch.GetTimestamp();
                var record = await get(seconds, cancellation).ConfigureAwait(false);
                // Should an answer come at once though nothing happened, as something on the way cut the wait: every second is enough.
                if (seconds > 0 && !isDone(record) && Stopwatch.GetElapsedTime(asked) < TimeSpan.FromMilliseconds(50))
                    await Task.Delay(TimeSpan.FromSeconds(1), cancellation).ConfigureAwait(false);
                return record;
            }
            finally
            {
                _slots.Release();
            }
        }
        finally
        {
            Interlocked.Decrement(ref _inTurn);
        }
    }
}
