// SPDX-License-Identifier: Apache-2.0
using System.Runtime.CompilerServices;
using System.Text.Json.Serialization.Metadata;
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Runs of apps.</summary>
public sealed class AppRunsClient
{
    private readonly Transport _transport;
    private readonly Waiting _waiting;

    internal AppRunsClient(Transport transport, Waiting waiting)
    {
        _transport = transport;
        _waiting = waiting;
    }

    /// <summary>Runs that you may see, the newest first, without inputs, outputs and what they returned.</summary>
    /// <param name="filter">Which of them; null for the newest 100.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The runs.</returns>
    [Operation("appRuns.list", "listAppRuns")]
    public Task<IReadOnlyList<AppRunItem>> ListAsync(AppRunFilter? filter = null, CancellationToken cancellationToken = default)
    {
        filter ??= new AppRunFilter();
        var path = new ApiPath("app-runs").With("namespace", filter.Namespace).With("app", filter.App).With("status", filter.Status?.ToString())
            .With("idEnding", filter.IdEnding).With("mine", filter.Mine).With("parent", filter.Parent);
        return _transport.PagesAsync(path, SdkJson.Default.AppRunPage, cancellationToken, filter.Limit);
    }

    /// <summary>One run as it is now.</summary>
    /// <param name="runId">Its id.</param>
    /// <param name="console">With what it printed, as far as that is kept.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run.</returns>
    [Operation("appRuns.get", "getAppRun")]
    public Task<AppRun> GetAsync(string runId, bool console = false, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Get(new ApiPath("app-runs", runId).With("console", console)), SdkJson.Default.AppRun, cancellationToken);

    /// <summary>Waits for the end of a run. To cancel ends the wait, not the run.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="timeout">How long to wait; null for as long as it takes.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, or as it is when the time is over.</returns>
    [Operation("appRuns.wait")]
    public Task<AppRun> WaitAsync(string runId, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
    {
        Task<AppRun> Read(int seconds, CancellationToken cancellation)
        {
            var path = new ApiPath("app-runs", runId);
            return _transport.JsonAsync(ApiRequest.Wait(path, seconds), SdkJson.Default.AppRun, cancellation);
        }

        return _waiting.UntilAsync("appRun", runId, Read, static run => run.HasEnded, null, timeout, cancellationToken);
    }

    /// <summary>What a run printed. When following, it goes on as the app prints, until the run has ended; nothing is lost or repeated.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="after">Only lines with a higher number than this.</param>
    /// <param name="follow">Whether to go on until the run has ended.</param>
    /// <param name="cancellationToken">Ends the reading and leaves the run alone.</param>
    /// <returns>The lines.</returns>
    [Operation("appRuns.console", "getAppConsole")]
    public IAsyncEnumerable<ConsoleLine> ConsoleAsync(
        string runId, long after = 0, bool follow = false, CancellationToken cancellationToken = default) =>
        LinesAsync(runId, "console", SdkJson.Default.ConsoleLines, after, follow, cancellationToken);

    /// <summary>What a run wrote to its log, as <see cref="ConsoleAsync"/> tells what it printed.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="after">Only lines with a higher number than this.</param>
    /// <param name="follow">Whether to go on until the run has ended.</param>
    /// <param name="cancellationToken">Ends the reading and leaves the run alone.</param>
    /// <returns>The lines.</returns>
    [Operation("appRuns.log", "getAppLog")]
    public IAsyncEnumerable<LogLine> LogAsync(
        string runId, long after = 0, bool follow = false, CancellationToken cancellationToken = default) =>
        LinesAsync(runId, "log", SdkJson.Default.LogLines, after, follow, cancellationToken);

    /// <summary>Ends a run, and what it started. One that has ended before is as it was.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run, which may be about to end.</returns>
    [Operation("appRuns.cancel", "cancelAppRun")]
    public Task<AppRun> CancelAsync(string runId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Act(new ApiPath("app-runs", runId, "cancel")), SdkJson.Default.AppRun, cancellationToken);

    /// <summary>Starts an app once more as it was: the same version, the same inputs.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="idempotencyKey">A text of your own for this start; null: the SDK makes one.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The new run.</returns>
    [Operation("appRuns.rerun", "rerunApp")]
    public Task<AppRun> RerunAsync(string runId, string? idempotencyKey = null, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.KeyedEmpty(new ApiPath("app-runs", runId, "rerun"), idempotencyKey), SdkJson.Default.AppRun, cancellationToken);

    private async IAsyncEnumerable<T> LinesAsync<T>(
        string runId, string what, JsonTypeInfo<Lines<T>> type, long after, bool follow, [EnumeratorCancellation] CancellationToken cancellation)
    {
        while (true)
        {
            var path = new ApiPath("app-runs", runId, what).With("after", after);
            var lines = await _transport.JsonAsync(follow ? ApiRequest.Wait(path, Waiting.Seconds) : ApiRequest.Get(path), type, cancellation)
                .ConfigureAwait(false);
            foreach (var line in lines.Items)
                yield return line;
            after = lines.Next;
            if (lines.Ended || (!follow && lines.Items.Count == 0))
                yield break;
        }
    }
}
