// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk.Events;

/// <summary>
/// Brings what event streams tell to those who wait for ends. It knows which streams tell all ends of a kind, whom to wake, and which
/// things ended lately, for those who begin to wait when it has happened. It wakes; the truth is the record that is read then.
/// </summary>
internal sealed class EndWatch
{
    private const int Remembered = 16_384;

    private readonly object _lock = new();
    private readonly Dictionary<string, HashSet<Waiter>> _waiters = new(StringComparer.Ordinal);
    private readonly HashSet<string> _lately = new(StringComparer.Ordinal);
    private readonly Queue<string> _order = new();
    private readonly Dictionary<object, Func<string, bool>> _streams = [];

    /// <summary>Rises whenever streams may have missed something: what was read before must be read again.</summary>
    private long _epoch;

    /// <summary>A stream is open that tells all ends of these kinds.</summary>
    internal void Opened(object stream, Func<string, bool> tellsAllOf)
    {
        lock (_lock)
            _streams[stream] = tellsAllOf;
    }

    /// <summary>A stream is open again, after it was away: everybody looks once.</summary>
    internal void Reopened()
    {
        lock (_lock)
            WakeAll();
    }

    /// <summary>A stream is gone: everybody looks, and goes on without it.</summary>
    internal void Closed(object stream)
    {
        lock (_lock)
        {
            if (_streams.Remove(stream))
                WakeAll();
        }
    }

    /// <summary>Something came of the thing of that id; <paramref name="ended"/>: it ended.</summary>
    internal void Told(string id, bool ended)
    {
        lock (_lock)
        {
            if (ended && _lately.Add(id))
            {
                _order.Enqueue(id);
                if (_order.Count > Remembered)
                    _lately.Remove(_order.Dequeue());
            }
            if (_waiters.TryGetValue(id, out var waiters))
            {
                foreach (var waiter in waiters)
                    waiter.Wake();
            }
        }
    }

    /// <summary>The present epoch, where a stream tells all ends of the kind; else null.</summary>
    internal long? EpochOf(string kind)
    {
        lock (_lock)
            return Covers(kind) ? _epoch : null;
    }

    /// <summary>
    /// Begins to wait for the thing of that id. Null where no stream tells all ends of its kind. The waiter is woken already where the
    /// thing ended lately, or where <paramref name="since"/>, the epoch in which its record was read, is over.
    /// </summary>
    internal Waiter? Watch(string kind, string id, long? since)
    {
        lock (_lock)
        {
            if (!Covers(kind))
                return null;
            var waiter = new Waiter(this, id);
            if (!_waiters.TryGetValue(id, out var waiters))
                _waiters[id] = waiters = [];
            waiters.Add(waiter);
            if (since != _epoch || _lately.Contains(id))
                waiter.Wake();
            return waiter;
        }
    }

    private bool Covers(string kind)
    {
        foreach (var tells in _streams.Values)
        {
            if (tells(kind))
                return true;
        }
        return false;
    }

    private void WakeAll()
    {
        _epoch++;
        foreach (var waiters in _waiters.Values)
        {
            foreach (var waiter in waiters)
                waiter.Wake();
        }
    }

    /// <summary>Somebody who waits, until disposed of.</summary>
    internal sealed class Waiter(EndWatch watch, string id) : IDisposable
    {
        private volatile TaskCompletionSource _woken = new(TaskCreationOptions.RunContinuationsAsynchronously);

        /// <summary>Ends when there is a reason to look.</summary>
        internal Task Woken => _woken.Task;

        internal void Wake() => _woken.TrySetResult();

        /// <summary>To be called before looking: what comes from now on is a reason to look again.</summary>
        internal void Rearm() => _woken = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);

        public void Dispose()
        {
            lock (watch._lock)
            {
                if (watch._waiters.TryGetValue(id, out var waiters) && waiters.Remove(this) && waiters.Count == 0)
                    watch._waiters.Remove(id);
            }
        }
    }
}
