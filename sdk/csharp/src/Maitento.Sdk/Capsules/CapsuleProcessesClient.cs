// SPDX-License-Identifier: Apache-2.0
using Maitento.Entities.Capsules;
using Maitento.Sdk.Access;
using Maitento.Sdk.Capsules;
using Maitento.Sdk.Events;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Runs of capsules: machines that live until their work is done, they are stopped, or their time is over.</summary>
public sealed class CapsuleProcessesClient
{
    private const string OfRun = "capsuleRun";
    private const string OfCommand = "command";

    private static readonly TimeSpan FullPause = TimeSpan.FromSeconds(2);
    private static readonly TimeSpan EndIsNear = TimeSpan.FromSeconds(10);

    private readonly Transport _transport;
    private readonly NamespaceScope _scope;
    private readonly Waiting _waiting;

    internal CapsuleProcessesClient(Transport transport, NamespaceScope scope, Waiting waiting)
    {
        _transport = transport;
        _scope = scope;
        _waiting = waiting;
    }

    // ---- runs ----

    /// <summary>Starts a capsule and returns at once; commands may be sent to the run from then on.</summary>
    /// <param name="ns">The namespace; null for the default.</param>
    /// <param name="name">Of the capsule.</param>
    /// <param name="request">What the start adds; null for nothing.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run, which is starting.</returns>
    /// <exception cref="MaitentoException"><c>capacityExceeded</c>: the server is full, and
    /// <see cref="CapsuleProcessStartRequest.WaitForCapacity"/> was not asked for.</exception>
    [Operation("capsules.start", "startRun")]
    public async Task<CapsuleRun> StartAsync(
        string? ns, string name, CapsuleProcessStartRequest? request = null, CancellationToken cancellationToken = default)
    {
        request ??= new CapsuleProcessStartRequest();
        while (true)
        {
            try
            {
                return await _scope.CallAsync(
                    ns, scope => _transport.JsonAsync(
                        ApiRequest.Keyed(
                            new ApiPath("namespaces", scope, "capsules", name, "runs"), request, SdkJson.Default.CapsuleProcessStartRequest,
                            request.IdempotencyKey),
                        SdkJson.Default.CapsuleRun, cancellationToken),
                    cancellationToken).ConfigureAwait(false);
            }
            catch (MaitentoException full) when (request.WaitForCapacity && full.Code == ErrorCode.CapacityExceeded)
            {
                await Task.Delay(full.RetryAfter ?? FullPause, cancellationToken).ConfigureAwait(false);
            }
        }
    }

    /// <summary>Runs that you may see, the newest first.</summary>
    /// <param name="filter">Which of them; null for the newest 100.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The runs.</returns>
    [Operation("capsuleRuns.list", "listRuns")]
    public Task<IReadOnlyList<CapsuleRun>> ListAsync(CapsuleRunFilter? filter = null, CancellationToken cancellationToken = default)
    {
        filter ??= new CapsuleRunFilter();
        var path = new ApiPath("capsule-runs").With("namespace", filter.Namespace).With("capsule", filter.Capsule)
            .With("status", filter.Status?.ToString()).With("idEnding", filter.IdEnding).With("mine", filter.Mine);
        return _transport.PagesAsync(path, SdkJson.Default.CapsuleRunPage, cancellationToken, filter.Limit);
    }

    /// <summary>One run as it is now.</summary>
    /// <param name="runId">Its id.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run.</returns>
    [Operation("capsuleRuns.get", "getRun")]
    public Task<CapsuleRun> GetAsync(string runId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("capsule-runs", runId)), SdkJson.Default.CapsuleRun, cancellationToken);

    /// <summary>What happened in a run, the oldest first.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="after">Only entries with a higher number than this.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The entries.</returns>
    [Operation("capsuleRuns.story")]
    public async Task<IReadOnlyList<StoryEntry>> GetStoryAsync(string runId, long after = 0, CancellationToken cancellationToken = default)
    {
        var entries = new List<StoryEntry>();
        while (true)
        {
            var path = new ApiPath("capsule-runs", runId).With("story", true).With("storyAfter", after);
            var run = await _transport.JsonAsync(ApiRequest.Get(path), SdkJson.Default.CapsuleRun, cancellationToken).ConfigureAwait(false);
            if (run.Story is not { Count: > 0 } found)
                return entries;
            entries.AddRange(found);
            after = found[^1].Number;
        }
    }

    /// <summary>Waits for the end of a run. To cancel ends the wait, not the run.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="timeout">How long to wait; null for as long as it takes.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it ended, or as it is when the time is over.</returns>
    [Operation("capsuleRuns.wait")]
    public Task<CapsuleRun> WaitAsync(string runId, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        _waiting.UntilAsync(OfRun, runId, Reader(runId, "ended"), static run => run.HasEnded, null, timeout, cancellationToken);

    /// <summary>Waits until a run is ready, or has ended. To cancel ends the wait, not the run.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="timeout">How long to wait; null for as long as it takes.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the run alone.</param>
    /// <returns>The run as it is then: <c>Running</c> where it is ready; or as it is when the time is over.</returns>
    [Operation("capsuleRuns.waitUntilReady")]
    public Task<CapsuleRun> WaitUntilReadyAsync(string runId, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
        _waiting.UntilAsync(
            OfRun, runId, Reader(runId, "ready"), static run => run.HasEnded || run.Status == RunStatus.Running, null, timeout, cancellationToken);

    /// <summary>Stops a run, whatever it does. One that has ended before is as it was.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run, which may be about to end.</returns>
    [Operation("capsuleRuns.terminate", "terminateRun")]
    public Task<CapsuleRun> TerminateAsync(string runId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Act(new ApiPath("capsule-runs", runId, "terminate")), SdkJson.Default.CapsuleRun, cancellationToken);

    /// <summary>Gives a run another longest life, counted from its start as ever.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="maxDuration">Whole seconds.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The run, with its new deadline.</returns>
    [Operation("capsuleRuns.extend", "extendRun")]
    public Task<CapsuleRun> ExtendAsync(string runId, TimeSpan maxDuration, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Json(
                HttpMethod.Post, new ApiPath("capsule-runs", runId, "extend"), new ExtendBody(maxDuration), SdkJson.Default.ExtendBody, repeatsAlike: true),
            SdkJson.Default.CapsuleRun, cancellationToken);

    /// <summary>The files of a run that lives, with the rights of one of its users. Nothing is asked of the server yet.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="user">A user of the run; null for <c>maitento</c>.</param>
    /// <returns>Its files.</returns>
    public MaitentoFiles Files(string runId, string? user = null) => MaitentoFiles.OfRun(_transport, runId, user);

    // ---- commands ----

    /// <summary>
    /// Sends a command and returns at once. Commands of a run begin in the order in which they were sent, one at a time but for those that
    /// are <c>Async</c>; a run that is starting takes them, too, and begins with them when it is ready.
    /// </summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="request">The command.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The command: <see cref="GetCommandAsync"/> and <see cref="WaitForCommandAsync"/> tell how it went.</returns>
    /// <exception cref="MaitentoException"><c>runEnded</c>: the run has ended.</exception>
    [Operation("capsuleRuns.exec", "sendCommand")]
    public Task<CapsuleCommand> RunCommandAsync(
        string runId, CapsuleProcessRunCommandRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        return SendAsync(runId, request, 0, cancellationToken);
    }

    /// <summary>
    /// Sends a command and waits for its end. One that fails is a result: its exit code, status and end reason tell how. With an event
    /// stream open (<see cref="EventsClient.OpenAsync"/>) the end is heard as it happens; else the server is asked with requests that it
    /// answers at the end. A server that restarts, or a connection that breaks, is waited for; the command is never run twice, and
    /// success is never reported without the command's record.
    /// </summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="request">The command; with <see cref="CapsuleProcessRunCommandRequest.OnOutput"/> what it prints is told as it prints it.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the command alone: <see cref="CancelCommandAsync"/> ends that.</param>
    /// <returns>The command as it ended.</returns>
    /// <exception cref="CapsuleCommandAbortedException">The run ended first, or had ended already.</exception>
    /// <exception cref="MaitentoException"><c>outcomeUnknown</c>: the server stayed away.</exception>
    [Operation("capsuleRuns.execAndWait")]
    public async Task<CapsuleCommand> RunCommandAndWaitAsync(
        string runId, CapsuleProcessRunCommandRequest request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        var since = _waiting.Watch.EpochOf(OfCommand);
        var isTold = since is not null || request.OnOutput is not null;
        CapsuleCommand command;
        try
        {
            command = await SendAsync(runId, request, isTold ? 0 : Waiting.Seconds, cancellationToken).ConfigureAwait(false);
        }
        catch (MaitentoException error) when (error.Code == ErrorCode.RunEnded)
        {
            var run = await LastOfAsync(runId, cancellationToken).ConfigureAwait(false);
            throw new CapsuleCommandAbortedException(error.Message, null, run, error);
        }
        if (request.OnOutput is { } onOutput)
            await TellOutputAsync(command, onOutput, cancellationToken).ConfigureAwait(false);
        return await EndedAsync(command, since, null, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>The commands of a run, the oldest first, without what they printed: <see cref="GetCommandAsync"/> has that.</summary>
    /// <param name="runId">Of the run.</param>
    /// <param name="status">Only commands of this status.</param>
    /// <param name="idEnding">Only commands whose id ends so.</param>
    /// <param name="limit">At most so many; null for all.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The commands.</returns>
    [Operation("capsuleRuns.listCommands", "listCommands")]
    public Task<IReadOnlyList<CapsuleCommandItem>> ListCommandsAsync(
        string runId, CommandStatus? status = null, string? idEnding = null, int? limit = null, CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(
            new ApiPath("capsule-runs", runId, "commands").With("status", status?.ToString()).With("idEnding", idEnding),
            SdkJson.Default.CapsuleCommandPage, cancellationToken, limit);

    /// <summary>One command as it is now.</summary>
    /// <param name="runId">Of its run.</param>
    /// <param name="commandId">Its id.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The command.</returns>
    [Operation("capsuleRuns.getCommand", "getCommand")]
    public Task<CapsuleCommand> GetCommandAsync(string runId, string commandId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Get(new ApiPath("capsule-runs", runId, "commands", commandId)), SdkJson.Default.CapsuleCommand, cancellationToken);

    /// <summary>One command by its whole id alone, or null.</summary>
    /// <param name="commandId">Its id.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Null where there is none that you may see.</returns>
    [Operation("capsuleRuns.findCommand", "getCommandById")]
    public Task<CapsuleCommand?> FindCommandAsync(string commandId, CancellationToken cancellationToken = default) =>
        NamespaceScope.FindAsync(_transport.JsonAsync(
            ApiRequest.Get(new ApiPath("commands", commandId)), SdkJson.Default.CapsuleCommand, cancellationToken));

    /// <summary>Waits for the end of a command. To cancel ends the wait, not the command.</summary>
    /// <param name="runId">Of its run.</param>
    /// <param name="commandId">Its id.</param>
    /// <param name="timeout">How long to wait; null for as long as it takes.</param>
    /// <param name="cancellationToken">Ends the wait and leaves the command alone.</param>
    /// <returns>The command as it ended, or as it is when the time is over.</returns>
    /// <exception cref="CapsuleCommandAbortedException">The run ended first.</exception>
    [Operation("capsuleRuns.waitCommand")]
    public async Task<CapsuleCommand> WaitForCommandAsync(
        string runId, string commandId, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
    {
        var command = await UntilEndedAsync(runId, commandId, null, timeout, cancellationToken).ConfigureAwait(false);
        return await CheckAsync(command, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Ends a command, or takes it from the queue. One that has ended before is as it was.</summary>
    /// <param name="runId">Of its run.</param>
    /// <param name="commandId">Its id.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The command, which may be about to end.</returns>
    [Operation("capsuleRuns.cancelCommand", "cancelCommand")]
    public Task<CapsuleCommand> CancelCommandAsync(string runId, string commandId, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Act(new ApiPath("capsule-runs", runId, "commands", commandId, "cancel")), SdkJson.Default.CapsuleCommand, cancellationToken);

    /// <summary>
    /// What a command printed, byte for byte. When following, it goes on as the command prints, until it has ended; a connection that
    /// breaks is made again where it was. The last 64 MiB of a stream are kept: of more than that the oldest is left out, as the offsets
    /// show.
    /// </summary>
    /// <param name="runId">Of its run.</param>
    /// <param name="commandId">Its id.</param>
    /// <param name="stream">Which stream, or both.</param>
    /// <param name="from">Offset of the first byte.</param>
    /// <param name="follow">Whether to go on until the command has ended.</param>
    /// <param name="cancellationToken">Ends the reading and leaves the command alone.</param>
    /// <returns>Pieces of whole characters.</returns>
    [Operation("capsuleRuns.output", "getCommandOutput")]
    public IAsyncEnumerable<CommandOutput> OutputAsync(
        string runId, string commandId, CommandStream stream = CommandStream.Standard, long from = 0, bool follow = false,
        CancellationToken cancellationToken = default)
    {
        async Task<bool> HasEnded(CancellationToken cancellation) =>
            (await GetCommandAsync(runId, commandId, cancellation).ConfigureAwait(false)).HasEnded;

        IAsyncEnumerable<CommandOutput> Read(CommandStream of) =>
            new OutputReader(_transport, runId, commandId, of, HasEnded).ReadAsync(from, follow, cancellationToken);

        return stream == CommandStream.Both
            ? LiveOutput.MergeAsync(Read(CommandStream.Standard), Read(CommandStream.Error), cancellationToken) : Read(stream);
    }

    // ---- how ----

    private Func<int, CancellationToken, Task<CapsuleRun>> Reader(string runId, string until) => (seconds, cancellation) =>
    {
        var path = new ApiPath("capsule-runs", runId);
        return _transport.JsonAsync(
            ApiRequest.Wait(path.With("until", until), seconds), SdkJson.Default.CapsuleRun, cancellation);
    };

    private Task<CapsuleCommand> SendAsync(string runId, CapsuleProcessRunCommandRequest request, int wait, CancellationToken cancellation) =>
        _transport.JsonAsync(
            ApiRequest.Keyed(
                new ApiPath("capsule-runs", runId, "commands"), request, SdkJson.Default.CapsuleProcessRunCommandRequest, request.IdempotencyKey, wait),
            SdkJson.Default.CapsuleCommand, cancellation);

    private async Task TellOutputAsync(CapsuleCommand command, Action<CommandOutput> onOutput, CancellationToken cancellation)
    {
        await _waiting.Listeners.WaitAsync(cancellation).ConfigureAwait(false);
        try
        {
            await foreach (var piece in OutputAsync(command.RunId, command.Id, CommandStream.Both, 0, follow: true, cancellation).ConfigureAwait(false))
                onOutput(piece);
        }
        finally
        {
            _waiting.Listeners.Release();
        }
    }

    private async Task<CapsuleCommand> EndedAsync(CapsuleCommand command, long? since, TimeSpan? timeout, CancellationToken cancellation)
    {
        if (!command.HasEnded)
            command = await UntilEndedAsync(command.RunId, command.Id, since, timeout, cancellation).ConfigureAwait(false);
        return await CheckAsync(command, cancellation).ConfigureAwait(false);
    }

    private Task<CapsuleCommand> UntilEndedAsync(
        string runId, string commandId, long? since, TimeSpan? timeout, CancellationToken cancellation)
    {
        Task<CapsuleCommand> Read(int seconds, CancellationToken token)
        {
            var path = new ApiPath("capsule-runs", runId, "commands", commandId);
            return _transport.JsonAsync(
                ApiRequest.Wait(path, seconds), SdkJson.Default.CapsuleCommand, token);
        }

        return _waiting.UntilAsync(OfCommand, commandId, Read, static command => command.HasEnded, since, timeout, cancellation);
    }

    private async Task<CapsuleCommand> CheckAsync(CapsuleCommand command, CancellationToken cancellation)
    {
        if (command.Status != CommandStatus.Aborted)
            return command;
        var run = await LastOfAsync(command.RunId, cancellation).ConfigureAwait(false);
        throw new CapsuleCommandAbortedException(command.FailureDetails, command, run);
    }

    /// <summary>The run as it ended: its commands are told a moment before. Null where it cannot be read any more.</summary>
    private async Task<CapsuleRun?> LastOfAsync(string runId, CancellationToken cancellation)
    {
        try
        {
            return await WaitAsync(runId, EndIsNear, cancellation).ConfigureAwait(false);
        }
        catch (MaitentoException)
        {
            return null; // the abort is what is to be told
        }
    }
}
