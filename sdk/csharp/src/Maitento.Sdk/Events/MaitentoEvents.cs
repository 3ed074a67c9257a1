// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Text.Json;
using System.Text.Json.Serialization.Metadata;
using System.Threading.Channels;
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>
/// An open stream of events. Read it with <c>await foreach</c>, each event once; dispose of it to close it. A stream that breaks, or
/// says nothing for 45 seconds, is opened again where it was. It ends by itself only where it was asked for without following. When the
/// server stays away, or the caller may not see these events any more, the loop throws <see cref="MaitentoException"/>.
/// </summary>
public sealed class MaitentoEvents : IAsyncEnumerable<MaitentoEvent>, IAsyncDisposable
{
    /// <summary>How many events wait for a reader; after that the oldest are dropped, and a <see cref="GapEvent"/> says so.</summary>
    private const int Unread = 10_000;

    /// <summary>The same where output is told: then nothing is dropped, and the server is kept waiting.</summary>
    private const int UnreadOutput = 64;

    private readonly Transport _transport;
    private readonly EndWatch _watch;
    private readonly EventsOptions _options;
    private readonly TimeSpan _silence;
    private readonly Action<MaitentoEvents> _closed;
    private readonly CancellationTokenSource _closing = new();
    private readonly Channel<MaitentoEvent> _unread;
    private readonly TaskCompletionSource _begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private Task _pump = Task.CompletedTask;
    private long? _after;
    private string? _gap;
    private int _disposed;

    internal MaitentoEvents(
        Transport transport, EndWatch watch, EventsOptions options, TimeSpan silence, Action<MaitentoEvents> closed)
    {
        _transport = transport;
        _watch = watch;
        _options = options;
        _silence = silence;
        _closed = closed;
        _after = options.After;
        _unread = options.Output
            ? Channel.CreateBounded<MaitentoEvent>(UnreadOutput)
            : Channel.CreateBounded<MaitentoEvent>(
                new BoundedChannelOptions(Unread) { FullMode = BoundedChannelFullMode.DropOldest },
                _ => Volatile.Write(ref _gap, $"more than {Unread} events were not read in time"));
    }

    /// <summary>The number of the last event that came: another stream with it as <see cref="EventsOptions.After"/> goes on there.</summary>
    public long? LastNumber => _after;

    /// <summary>The events, as they come.</summary>
    /// <param name="cancellationToken">Ends the reading, not the stream.</param>
    /// <returns>Each event once.</returns>
    public async IAsyncEnumerator<MaitentoEvent> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        await foreach (var read in _unread.Reader.ReadAllAsync(cancellationToken).ConfigureAwait(false))
        {
            if (Interlocked.Exchange(ref _gap, null) is { } reason)
                yield return new GapEvent { Reason = reason };
            yield return read;
        }
    }

    /// <summary>Closes the stream.</summary>
    /// <returns>When it is closed.</returns>
    public async ValueTask DisposeAsync()
    {
        if (Interlocked.Exchange(ref _disposed, 1) != 0)
            return;
        await _closing.CancelAsync().ConfigureAwait(false);
        await _pump.ConfigureAwait(false);
        _closing.Dispose();
    }

    /// <summary>Begins; returns when the server has.</summary>
    internal async Task StartAsync(CancellationToken cancellation)
    {
        _pump = Task.Run(PumpAsync, CancellationToken.None);
        await _begun.Task.WaitAsync(cancellation).ConfigureAwait(false);
    }

    // ---- the pump ----

    private bool TellsAllOf(string kind) => _options.Kinds is null || _options.Kinds.Contains(kind);

    [System.Diagnostics.CodeAnalysis.SuppressMessage("Design", "CA1031", Justification = "whatever ends the pump is told to the reader")]
    private async Task PumpAsync()
    {
        Exception? why = null;
        try
        {
            await FollowAsync().ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (_closing.IsCancellationRequested)
        {
            // closed
        }
        catch (Exception error)
        {
            why = error;
        }
        _watch.Closed(this);
        _closed(this);
        _unread.Writer.TryComplete(why);
        if (why is null)
            _begun.TrySetResult();
        else
            _begun.TrySetException(why);
    }

    /// <summary>One connection after the other, until the stream has ended.</summary>
    private async Task FollowAsync()
    {
        var patience = Patience.OfEvents(_transport.Patience);
        while (true)
        {
            var asked = Stopwatch.GetTimestamp();
            TimeSpan pause;
            try
            {
                if (await ReadOneAsync().ConfigureAwait(false))
                    return;
                patience.Renew();
                pause = Patience.Of(0, TimeSpan.FromSeconds(0.2), TimeSpan.FromSeconds(5));
            }
            catch (MaitentoException error) when (error.Code == ErrorCode.Gone && _begun.Task.IsCompleted)
            {
                _after = null; // what came since is not kept any more: from now on
                Volatile.Write(ref _gap, error.Message);
                continue;
            }
            catch (MaitentoException error) when ((_begun.Task.IsCompleted || _transport.WasReached)
                && (Transport.Passes(error) || (_begun.Task.IsCompleted && error.Code == ErrorCode.RateLimited)))
            {
                pause = patience.After(error, asked);
            }
            await Task.Delay(pause, _closing.Token).ConfigureAwait(false);
        }
    }

    /// <summary>One connection to its end. True: the stream has ended, too.</summary>
    private async Task<bool> ReadOneAsync()
    {
        using var watch = new Watchdog(_silence, _closing.Token);
        using var answer = await _transport.OpenAsync(Request(), watch).ConfigureAwait(false);
        try
        {
            var body = await answer.Content.ReadAsStreamAsync(watch.Token).ConfigureAwait(false);
            await using (body.ConfigureAwait(false))
            {
                var reader = new SseReader(body);
                while (await reader.ReadAsync(watch.Token).ConfigureAwait(false) is { } frame)
                {
                    watch.Feed();
                    if (!frame.IsComment && await TakeAsync(frame, watch).ConfigureAwait(false) is { } hasEnded)
                        return hasEnded;
                }
                return !_options.Follow; // without following the end is the end, else it is a cut
            }
        }
        catch (Exception error) when (error is IOException or HttpRequestException or OperationCanceledException)
        {
            _closing.Token.ThrowIfCancellationRequested();
            return false; // it was there: again, from where it was
        }
    }

    private ApiRequest Request()
    {
        var isFirst = !_begun.Task.IsCompleted;
        var path = new ApiPath("events")
            .With("after", isFirst ? _options.After : null)
            .With("last", isFirst && _options.After is null ? _options.Last : null)
            .With("namespace", _options.Namespace)
            .With("kind", _options.Kinds is null ? null : string.Join(',', _options.Kinds))
            .With("run", _options.Run)
            .With("output", _options.Output)
            .With("follow", _options.Follow ? null : "false");
        return new ApiRequest(HttpMethod.Get, path.ToString())
        {
            IsLong = true,
            Accept = "text/event-stream",
            LastEventId = isFirst ? null : _after?.ToString(System.Globalization.CultureInfo.InvariantCulture),
        };
    }

    /// <summary>Takes a frame. Not null: the connection is over, and true: the stream, too.</summary>
    private async Task<bool?> TakeAsync(SseFrame frame, Watchdog watch)
    {
        switch (frame.Event)
        {
            case "hello":
                Hello(Read(frame, SdkJson.Default.HelloFrame));
                return null;
            case "change":
                await ChangeAsync(Read(frame, SdkJson.Default.ChangeEvent), watch).ConfigureAwait(false);
                return null;
            case "output":
                await TellAsync(Read(frame, SdkJson.Default.OutputEvent), watch).ConfigureAwait(false);
                return null;
            case "console":
                await TellAsync(Read(frame, SdkJson.Default.ConsoleEvent), watch).ConfigureAwait(false);
                return null;
            case "text":
                await TellAsync(Read(frame, SdkJson.Default.TextEvent), watch).ConfigureAwait(false);
                return null;
            case "end":
                var end = Read(frame, SdkJson.Default.EndFrame);
                _after = Math.Max(end.After, _after ?? 0);
                if (end.Code is "runEnded" or "accessLost")
                    throw new MaitentoException($"the event stream ended: {end.Sentence}", end.Code);
                return false; // "stopping", "tooSlow", and what is not known: again
            default:
                return null; // of a newer server
        }
    }

    private static T Read<T>(SseFrame frame, JsonTypeInfo<T> type)
    {
        try
        {
            return JsonSerializer.Deserialize(frame.Data, type) ?? throw new JsonException("it is null");
        }
        catch (JsonException error)
        {
            throw new MaitentoException($"a frame '{frame.Event}' of the event stream is not understood: {error.Message}", error);
        }
    }

    private void Hello(HelloFrame hello)
    {
        _after ??= hello.After;
        if (_options.Namespace is null && _options.Run is null && _options.Follow && !_begun.Task.IsCompleted)
            _watch.Opened(this, TellsAllOf);
        if (!_begun.TrySetResult())
            _watch.Reopened();
    }

    private async Task ChangeAsync(ChangeEvent change, Watchdog watch)
    {
        if (change.Number <= _after)
            return; // it came before the connection broke
        _after = change.Number;
        _watch.Told(change.Id, change.Change == "ended");
        await TellAsync(change, watch).ConfigureAwait(false);
    }

    private async Task TellAsync(MaitentoEvent told, Watchdog watch)
    {
        if (_unread.Writer.TryWrite(told))
            return;
        watch.Pause(); // the reader is slow: that is no silence of the server's
        await _unread.Writer.WriteAsync(told, _closing.Token).ConfigureAwait(false);
        watch.Feed();
    }
}
