// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk.Http;

/// <summary>Ends an operation when the caller cancels it, and when nothing has come for a time.</summary>
internal sealed class Watchdog : IDisposable
{
    private readonly TimeSpan _limit;
    private readonly CancellationToken _caller;
    private readonly CancellationTokenSource _source;

    internal Watchdog(TimeSpan limit, CancellationToken caller)
    {
        _limit = limit;
        _caller = caller;
        _source = CancellationTokenSource.CreateLinkedTokenSource(caller);
        Feed();
    }

    internal CancellationToken Token => _source.Token;

    internal CancellationToken Caller => _caller;

    /// <summary>Whether the time was over.</summary>
    internal bool HasBitten => _source.IsCancellationRequested && !_caller.IsCancellationRequested;

    public void Dispose() => _source.Dispose();

    /// <summary>Something came: the time begins again.</summary>
    internal void Feed() => _source.CancelAfter(_limit);

    /// <summary>What is waited for now is not of the other side.</summary>
    internal void Pause() => _source.CancelAfter(Timeout.InfiniteTimeSpan);

    internal void ThrowIfCallerCancelled() => _caller.ThrowIfCancellationRequested();

    /// <summary>The time that was over in place of the cancellation that it made.</summary>
    internal Exception Translate(Exception error) =>
        HasBitten ? new TimeoutException($"nothing came for {_limit.TotalSeconds:0} s", error) : error;
}
