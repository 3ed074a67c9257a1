// SPDX-License-Identifier: Apache-2.0
using System.Collections.Concurrent;
using System.Globalization;
using System.Text.RegularExpressions;
using Maitento.Entities.Capsules;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Unit;

/// <summary>Waits, with an event stream and without, against a server that answers what the test says.</summary>
public sealed class WaitingTests
{
    private static readonly CapsuleProcessRunCommandRequest Any = new() { Command = "x" };

    [Test]
    public async Task A_thousand_waits_share_one_stream_and_few_connections()
    {
        const int count = 1000;
        var ended = new ConcurrentDictionary<string, int>();
        var streams = 0;
        var number = 0;
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (request.Path.StartsWith("/v1/events", StringComparison.Ordinal))
            {
                streams++;
                await answer.BeginAsync("text/event-stream");
                await answer.ChunkAsync(Hello(0));
                await Check.UntilAsync(() => number == count);
                for (var i = 1; i <= count; i++)
                {
                    ended[$"c{i}"] = i % 7;
                    await answer.ChunkAsync(Change(i, $"c{i}"));
                }
                await Task.Delay(Timeout.Infinite);
            }
            else if (request.Method == "POST")
            {
                await answer.JsonAsync(Command($"c{Interlocked.Increment(ref number)}", "Running"), 201);
            }
            else
            {
                var id = request.Path.Split('/')[^1];
                await answer.JsonAsync(ended.TryGetValue(id, out var code) ? Command(id, code == 0 ? "Finished" : "Error", code) : Command(id, "Running"));
            }
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        var results = await Task.WhenAll(Enumerable.Range(0, count).Select(_ => mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any)));
        foreach (var result in results)
            Check.Equal((int?)(int.Parse(result.Id[1..], CultureInfo.InvariantCulture) % 7), result.ExitCode);
        Check.Equal(count, results.Select(result => result.Id).Distinct().Count());
        Check.Equal(count, server.Seen.Count(request => request.Method == "POST"));
        Check.That(server.Seen.Count(request => request.Method == "GET") <= count + 10);
        Check.Equal(1, streams);
        Check.That(server.MostOpen <= 34);
    }

    [Test]
    public async Task Without_a_stream_many_waits_take_turns()
    {
        var release = false;
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            var id = request.Method == "POST" ? $"c{Guid.NewGuid():N}" : Regex.Match(request.Path, "commands/(c[0-9a-f]+)").Groups[1].Value;
            if (!release && request.Path.Contains("wait=", StringComparison.Ordinal))
                await Task.WhenAny(Check.UntilAsync(() => release), Task.Delay(500));
            await answer.JsonAsync(release ? Command(id, "Error", 3) : Command(id, "Running"), request.Method == "POST" ? 201 : 200);
        });
        await using var mt = server.Client();
        var ids = Enumerable.Range(0, 300).Select(i => $"c{i:x}").ToList();
        var waits = ids.Select(id => mt.CapsuleProcesses.WaitForCommandAsync("r", id)).ToList();
        await Task.Delay(1500);
        release = true;
        Check.That((await Task.WhenAll(waits)).All(command => command.ExitCode == 3));
        Check.That(server.MostOpen <= 65);
    }

    [Test]
    public async Task An_end_that_is_told_before_the_answer_comes_is_not_missed()
    {
        var ended = false;
        var told = new TaskCompletionSource();
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (request.Path.StartsWith("/v1/events", StringComparison.Ordinal))
            {
                await answer.BeginAsync("text/event-stream");
                await answer.ChunkAsync(Hello(0));
                await Check.UntilAsync(() => ended);
                await answer.ChunkAsync(Change(1, "c1"));
                await Task.Delay(300);
                told.SetResult();
                await Task.Delay(Timeout.Infinite);
            }
            else if (request.Method == "POST")
            {
                ended = true;
                await told.Task;
                await answer.JsonAsync(Command("c1", "Running"), 201);
            }
            else
            {
                await answer.JsonAsync(Command("c1", "Error", 3));
            }
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        Check.Equal(3, (await mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any).WaitAsync(TimeSpan.FromSeconds(5))).ExitCode);
    }

    [Test]
    public async Task A_stream_goes_on_where_it_was_and_waits_look_again()
    {
        var connections = new ConcurrentQueue<Request>();
        var hasEnded = false;
        var isSent = false;
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (!request.Path.StartsWith("/v1/events", StringComparison.Ordinal))
            {
                isSent |= request.Method == "POST";
                await answer.JsonAsync(hasEnded ? Command("c1", "Error", 3) : Command("c1", "Running"), request.Method == "POST" ? 201 : 200);
                return;
            }
            connections.Enqueue(request);
            await answer.BeginAsync("text/event-stream");
            switch (connections.Count)
            {
                case 1:
                    await answer.ChunkAsync(Hello(10));
                    await answer.ChunkAsync(Change(11, "x1") + Change(12, "x2"));
                    await Check.UntilAsync(() => isSent);
                    answer.Cut();
                    break;
                case 2:
                    await answer.ChunkAsync(Hello(12));
                    await answer.ChunkAsync(Change(12, "x2") + Change(13, "x3"));
                    await answer.ChunkAsync("event: end\ndata: {\"code\":\"tooSlow\",\"after\":13,\"sentence\":\"s\"}\n\n");
                    await answer.EndAsync();
                    break;
                case 3:
                    await answer.ChunkAsync(Hello(13));
                    await Task.Delay(Timeout.Infinite); // silence
                    break;
                default:
                    hasEnded = true; // its event is lost: only looking finds it
                    await answer.ChunkAsync(Hello(13) + Change(14, "x4"));
                    await Task.Delay(Timeout.Infinite);
                    break;
            }
        });
        await using var mt = server.Client(patience: 20, silence: 1);
        await using var events = await mt.Events.OpenAsync();
        Check.Equal(3, (await mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any)).ExitCode);
        var ids = new List<string>();
        await foreach (var told in events)
        {
            ids.Add(((ChangeEvent)told).Id);
            if (ids.Count == 4)
                break;
        }
        Check.Same(["x1", "x2", "x3", "x4"], ids);
        Check.Same([null, "12", "13", "13"], connections.Take(4).Select(request => request.Header("Last-Event-ID")));
        Check.Equal(14L, events.LastNumber);
    }

    [Test]
    public async Task What_is_not_kept_any_more_is_a_gap_and_waits_look()
    {
        var connections = 0;
        var hasEnded = false;
        var isSent = false;
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (!request.Path.StartsWith("/v1/events", StringComparison.Ordinal))
            {
                isSent |= request.Method == "POST";
                await answer.JsonAsync(hasEnded ? Command("c1", "Error", 3) : Command("c1", "Running"), request.Method == "POST" ? 201 : 200);
                return;
            }
            switch (++connections)
            {
                case 1:
                    await answer.BeginAsync("text/event-stream");
                    await answer.ChunkAsync(Hello(10));
                    await Check.UntilAsync(() => isSent);
                    answer.Cut();
                    break;
                case 2:
                    hasEnded = true;
                    await answer.ProblemAsync(410, "gone", "events up to 500 are not kept any more");
                    break;
                default:
                    Check.Equal(null, request.Header("Last-Event-ID"));
                    await answer.BeginAsync("text/event-stream");
                    await answer.ChunkAsync(Hello(600) + Change(601, "x"));
                    await Task.Delay(Timeout.Infinite);
                    break;
            }
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        Check.Equal(3, (await mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any)).ExitCode);
        var told = new List<MaitentoEvent>();
        await foreach (var one in events)
        {
            told.Add(one);
            if (one is ChangeEvent)
                break;
        }
        Check.Contains("not kept any more", ((GapEvent)told[0]).Reason);
        Check.Equal(601L, ((ChangeEvent)told[1]).Number);
    }

    [Test]
    public async Task Events_that_nobody_reads_in_time_are_a_gap()
    {
        const int count = 10_050;
        await using var server = new ScriptedServer(async (_, answer) =>
        {
            await answer.BeginAsync("text/event-stream");
            await answer.ChunkAsync(Hello(0) + string.Concat(Enumerable.Range(1, count).Select(number => Change(number, "x"))));
            await Task.Delay(Timeout.Infinite);
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        await Check.UntilAsync(() => events.LastNumber == count);
        var told = new List<MaitentoEvent>();
        await foreach (var one in events)
        {
            told.Add(one);
            if (told.Count == 2)
                break;
        }
        Check.Contains("10000 events were not read in time", ((GapEvent)told[0]).Reason);
        Check.Equal(51L, ((ChangeEvent)told[1]).Number);
    }

    [Test]
    public async Task A_stream_that_the_server_ends_for_good_is_told()
    {
        await using var server = new ScriptedServer(async (_, answer) =>
        {
            await answer.BeginAsync("text/event-stream");
            await answer.ChunkAsync(Hello(1) + "event: end\ndata: {\"code\":\"accessLost\",\"after\":1,\"sentence\":\"the key is gone\"}\n\n");
            await answer.EndAsync();
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        var error = await Check.ThrowsAsync<MaitentoException>(async () =>
        {
            await foreach (var _ in events)
                throw new CheckException("an event came");
        });
        Check.Equal("accessLost", error.Code);
        Check.Contains("the key is gone", error.Message);
    }

    [Test]
    public async Task Success_is_never_told_without_the_record()
    {
        // The stream says "ended", the record does not: the wait goes on until it does.
        var looks = 0;
        var isSent = false;
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (request.Path.StartsWith("/v1/events", StringComparison.Ordinal))
            {
                await answer.BeginAsync("text/event-stream");
                await answer.ChunkAsync(Hello(0));
                await Check.UntilAsync(() => isSent);
                await answer.ChunkAsync(Change(1, "c1"));
                await Check.UntilAsync(() => looks == 1);
                await answer.ChunkAsync(Change(2, "c1"));
                await Task.Delay(Timeout.Infinite);
            }
            else if (request.Method == "POST")
            {
                isSent = true;
                await answer.JsonAsync(Command("c1", "Running"), 201);
            }
            else
            {
                await answer.JsonAsync(++looks == 1 ? Command("c1", "Running") : Command("c1", "Error", 3));
            }
        });
        await using var mt = server.Client();
        await using var events = await mt.Events.OpenAsync();
        Check.Equal(3, (await mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any)).ExitCode);
        Check.Equal(2, looks);
    }

    [Test]
    public async Task To_cancel_ends_the_wait_and_sends_nothing()
    {
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (request.Method == "GET")
                await Task.Delay(Timeout.Infinite);
            await answer.JsonAsync(Command("c1", "Running"), 201);
        });
        await using var mt = server.Client();
        using var stop = new CancellationTokenSource();
        var wait = mt.CapsuleProcesses.RunCommandAndWaitAsync("r", Any, stop.Token);
        await Check.UntilAsync(() => server.Seen.Count == 2);
        await stop.CancelAsync();
        var error = await Check.ThrowsAsync<OperationCanceledException>(() => wait);
        Check.Equal(stop.Token, error.CancellationToken);
        Check.Same(["POST", "GET"], server.Seen.Select(request => request.Method));
    }

    [Test]
    public async Task Output_goes_on_after_cuts_and_splits_no_character()
    {
        var bytes = System.Text.Encoding.UTF8.GetBytes("a" + string.Concat(Enumerable.Repeat("€😀", 500)));
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            if (!request.Path.Contains("/output", StringComparison.Ordinal))
            {
                await answer.JsonAsync(Command("c1", "Finished", 0));
                return;
            }
            var from = int.Parse(Regex.Match(request.Path, "from=([0-9]+)").Groups[1].Value, CultureInfo.InvariantCulture);
            await answer.BeginAsync("application/octet-stream", $"X-Maitento-Offset: {from}\r\n");
            var end = Math.Min(bytes.Length, from + 997);
            for (var at = from; at < end; at += 10)
                await answer.ChunkAsync(bytes[at..Math.Min(at + 10, end)]);
            if (end < bytes.Length)
                answer.Cut();
            else
                await answer.EndAsync();
        });
        await using var mt = server.Client();
        var text = new System.Text.StringBuilder();
        long next = 0;
        await foreach (var piece in mt.CapsuleProcesses.OutputAsync("r", "c1", follow: true))
        {
            Check.Equal(next, piece.Offset);
            next += piece.Bytes.Length;
            Check.That(!piece.Text.Contains('\uFFFD', StringComparison.Ordinal));
            text.Append(piece.Text);
        }
        Check.Equal(System.Text.Encoding.UTF8.GetString(bytes), text.ToString());
    }

    private static string Hello(long after) => $"id: {after}\nevent: hello\ndata: {{\"after\":{after},\"heartbeatSeconds\":15}}\n\n";

    private static string Change(long number, string id) =>
        $"id: {number}\nevent: change\ndata: {{\"number\":{number},\"date\":\"2026-11-30T04:51:17Z\",\"kind\":\"command\",\"change\":\"ended\",\"id\":\"{id}\"}}\n\n";

    private static string Command(string id, string status, int? exitCode = null) =>
        $$"""{"id":"{{id}}","runId":"r","status":"{{status}}","exitCode":{{exitCode?.ToString(CultureInfo.InvariantCulture) ?? "null"}}}""";
}
