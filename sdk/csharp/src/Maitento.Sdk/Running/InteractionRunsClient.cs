// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Runs of interactions.</summary>
public sealed class InteractionRunsClient
{
    private readonly Transport _transport;
    private readonly Waiting _waiting;

    internal InteractionRunsClient(Transport transport, Waiting waiting)
    {
        _transport = transport;
        _waiting = waiting;
    }

    /// <summary>Runs that you may see, the newest first, without inputs and output.</summary>
    /// <param name="filter">Which of them; null for the newest 100.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The runs.</returns>
    [Operation("interactionRuns.list", "listInteractionRuns")]
    public Task<IReadOnlyList<InteractionRunItem>> ListAsync(InteractionRunFilter? filter = null, CancellationToken cancellationToken = default)
    {
        filter ??= new InteractionRunFilter();
        var path = new ApiPath("interaction-runs").With("namespace", filter.Namespace).With("interaction", filter.Interaction)
            .With("status", filter.Status?.ToString()).With("idEnding", filter.IdEnding).With("mine", filter.Mine).With("parent", filter.Parent);
        return _transport.PagesAsync(path, SdkJson.Default.InteractionRunPage, cancellationToken, filter.Limit);
    }

    /// <summary>One run as it is now.</summary>
    /// <param name="runId">Its id.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run.</returns>
    [Operation("interactionRuns.get", "getInteractionRun")]
    public Task<InteractionRun> GetAsync(string runId, CancellationToken cancellationToken = default) => ReadAsync(runId, 0, cancellationToken);

    /// <summary>Waits for the end of a run. To cancel ends the wait, not the run.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="timeout">How long to wait; null for as long as it takes.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, or as it is when the time is over.</returns>
    [Operation("interactionRuns.wait")]
    public Task<InteractionRun> WaitAsync(string runId, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        _waiting.UntilAsync(
            "interactionRun", runId, (seconds, cancellation) => ReadAsync(runId, seconds, cancellation), static run => run.HasEnded, null, timeout,
            cancellationToken);

    /// <summary>What the model was asked, what it answered, and what was wrong with that; the first attempt first.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All attempts, 10 at most.</returns>
    [Operation("interactionRuns.attempts", "listInteractionAttempts")]
    public Task<IReadOnlyList<InteractionAttempt>> AttemptsAsync(string runId, CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(
            new ApiPath("interaction-runs", runId, "attempts"), SdkJson.Default.InteractionAttemptPage, cancellationToken);

    /// <summary>
    /// What the model says, as it comes. Ask again with <see cref="InteractionText.Stream"/> and <see cref="InteractionText.Next"/> of the
    /// answer before, until <see cref="InteractionText.Ended"/>.
    /// </summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="stream">The text that <paramref name="from"/> is a place in; 0 at first.</param>
    /// <param name="from">Bytes of it that are known.</param>
    /// <param name="wait">How long to wait for more, up to a minute.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What came since; empty when nothing did, or the run has ended.</returns>
    [Operation("interactionRuns.text", "getInteractionText")]
    public Task<InteractionText> TextAsync(
        string runId, long stream = 0, long from = 0, TimeSpan wait = default, CancellationToken cancellationToken = default)
    {
        var path = new ApiPath("interaction-runs", runId, "text").With("stream", stream).With("from", from);
        var seconds = (int)Math.Ceiling(wait.TotalSeconds);
        return _transport.JsonAsync(
            ApiRequest.Wait(path, seconds), SdkJson.Default.InteractionText, cancellationToken);
    }

    /// <summary>Ends a run: the model is not asked any more. One that has ended before is as it was.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run, which may be about to end.</returns>
    [Operation("interactionRuns.cancel", "cancelInteractionRun")]
    public Task<InteractionRun> CancelAsync(string runId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Act(new ApiPath("interaction-runs", runId, "cancel")), SdkJson.Default.InteractionRun, cancellationToken);

    private Task<InteractionRun> ReadAsync(string runId, int seconds, CancellationToken cancellation)
    {
        var path = new ApiPath("interaction-runs", runId);
        return _transport.JsonAsync(
            ApiRequest.Wait(path, seconds), SdkJson.Default.InteractionRun, cancellation);
    }
}
