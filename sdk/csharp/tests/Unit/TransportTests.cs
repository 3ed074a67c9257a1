// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Maitento.Entities.Capsules;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Unit;

/// <summary>Requests against a server that answers what the test says.</summary>
public sealed class TransportTests
{
    private const string Namespace = """{"id":"n","name":"x","owner":"ada","dateCreated":"2026-11-30T04:51:17.123456Z"}""";
    private const string Run = """{"id":"r1","status":"Starting"}""";

    [Test]
    public async Task Nobody_there_is_told_at_once_with_the_address_and_a_way_out()
    {
        var since = Stopwatch.GetTimestamp();
        foreach (var (url, source) in new[] { ("http://127.0.0.1:1", "MAITENTO_URL"), ("unix:/nowhere/x.sock", "MAITENTO_URL") })
        {
            await using var mt = new MaitentoClient(new(), name => name == "MAITENTO_URL" ? url : null);
            var error = await Check.ThrowsAsync<MaitentoException>(() => mt.WhoamiAsync());
            Check.Equal((ErrorCode.Unreachable, (int?)null), (error.Code, error.Status));
            Check.Contains($"cannot reach the server at {url} (from {source}): ", error.Message);
            Check.Contains("Check the address", error.Message);
        }
        Check.That(Stopwatch.GetElapsedTime(since) < TimeSpan.FromSeconds(10));
    }

    [Test]
    public async Task What_is_not_maitento_is_refused_and_gets_no_other_request()
    {
        foreach (var (status, body, wanted) in new[]
        {
            (200, """{"product":"other","version":"1","apiVersion":1}""", "it is 'other'"),
            (200, "<html>", "is not JSON of ours"),
            (200, "{}", "names no product"),
            (404, "<html>", "with status 404"),
            (302, "", "with status 302"),
        })
        {
            await using var server = new ScriptedServer((_, answer) => answer.JsonAsync(body, status, "Location: http://127.0.0.1:1/\r\n"), isMaitento: false);
            await using var mt = server.Client();
            var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Namespaces.CreateAsync("x"));
            Check.Equal(ErrorCode.NotMaitento, error.Code);
            Check.Contains($"what answers at {server.Url} is not a Maitento server: ", error.Message);
            Check.Contains(wanted, error.Message);
            Check.Same(["/v1/server"], server.Seen.Select(request => request.Path));
        }
    }

    [Test]
    public async Task What_speaks_no_http_is_refused()
    {
        using var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var talk = Task.Run(async () =>
        {
            using var client = await listener.AcceptTcpClientAsync();
            await client.GetStream().WriteAsync("SSH-2.0-x\r\n"u8.ToArray());
            _ = await client.GetStream().ReadAsync(new byte[1000]);
        });
        await using var mt = new MaitentoClient(new() { Url = $"http://{listener.LocalEndpoint}" }, _ => null);
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.WhoamiAsync());
        Check.Equal(ErrorCode.NotMaitento, error.Code);
        await talk;
    }

    [Test]
    public async Task Is_it_maitento_is_asked_once_and_the_key_is_sent()
    {
        var checks = 0;
        await using var server = new ScriptedServer(
            (request, answer) =>
            {
                if (request.Path == "/v1/server")
                    Interlocked.Increment(ref checks);
                return answer.JsonAsync(request.Path == "/v1/server" ? """{"product":"maitento"}""" : Namespace);
            },
            isMaitento: false);
        await using var mt = server.Client();
        await Task.WhenAll(Enumerable.Range(0, 20).Select(_ => mt.Namespaces.GetAsync("x")));
        Check.Equal(1, checks);
        var request = server.Seen.Last();
        Check.Equal("Bearer mt_secret", request.Header("Authorization"));
        Check.Contains("maitento-csharp/26.10.0", request.Header("User-Agent")!);
    }

    [Test]
    public async Task Reads_outlive_a_server_that_is_away()
    {
        var tries = 0;
        await using var server = new ScriptedServer(async (_, answer) =>
        {
            switch (++tries)
            {
                case 1: await answer.ProblemAsync(503, "unavailable", "starting", "Retry-After: 1\r\n"); break;
                case 2: answer.Cut(); break;
                case 3: await answer.RawAsync("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\":"); answer.Cut(); break;
                case 4: await answer.RawAsync("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"); break;
                default: await answer.JsonAsync(Namespace); break;
            }
        });
        await using var mt = server.Client();
        Check.Equal("ada", (await mt.Namespaces.GetAsync("x")).Owner);
        Check.Equal(5, tries);
    }

    [Test]
    public async Task Starts_are_repeated_with_the_same_key_and_what_has_none_is_not_repeated()
    {
        var cut = true;
        await using var server = new ScriptedServer((_, answer) =>
        {
            if (!cut)
                return answer.JsonAsync(Run, 201);
            answer.Cut();
            cut = false;
            return Task.CompletedTask;
        });
        await using var mt = server.Client();
        Check.Equal("r1", (await mt.CapsuleProcesses.StartAsync(null, "c")).Id);
        var keys = server.Seen.Select(request => request.Header("Idempotency-Key")!).ToList();
        Check.Equal(2, keys.Count);
        Check.That(keys[0].Length == 36 && keys[0] == keys[1]);
        server.Seen.Clear();

        cut = true;
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Namespaces.CreateAsync("x"));
        Check.Equal(ErrorCode.OutcomeUnknown, error.Code);
        Check.Contains("see what became of it", error.Message);
        Check.Equal(1, server.Seen.Count);
    }

    [Test]
    public async Task A_removal_whose_answer_was_lost_is_done()
    {
        var tries = 0;
        await using var server = new ScriptedServer((_, answer) =>
        {
            if (++tries > 1)
                return answer.ProblemAsync(404, "notFound", "no namespace 'x'");
            answer.Cut();
            return Task.CompletedTask;
        });
        await using var mt = server.Client();
        await mt.Namespaces.DeleteAsync("x");
        Check.Equal(2, tries);
        Check.Equal(ErrorCode.NotFound, (await Check.ThrowsAsync<MaitentoException>(() => mt.Namespaces.DeleteAsync("x"))).Code);
    }

    [Test]
    public async Task A_server_that_stays_away_is_told_as_unknown()
    {
        var isAway = false;
        await using var server = new ScriptedServer((_, answer) =>
        {
            if (!isAway)
                return answer.JsonAsync(Namespace);
            answer.Cut();
            return Task.CompletedTask;
        });
        await using var mt = server.Client(patience: 1);
        await mt.Namespaces.GetAsync("x");
        isAway = true;
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Namespaces.GetAsync("x"));
        Check.Equal(ErrorCode.OutcomeUnknown, error.Code);
        Check.Contains("outcome unknown: no server for 1 s", error.Message);
    }

    [Test]
    public async Task Failures_have_all_that_the_server_said()
    {
        await using var server = new ScriptedServer((_, answer) => answer.JsonAsync(
            """{"type":"about:blank","title":"X","status":422,"code":"deployFailed","detail":"1 fault","help":"correct it","extra":7,"diagnostics":[{"file":"a.mtr","line":3,"column":1,"message":"no","hint":"yes"}]}""",
            422, "Retry-After: 7\r\n"));
        await using var mt = server.Client();
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Capsules.GetAsync(null, "x"));
        Check.Equal((ErrorCode.DeployFailed, (int?)422, "correct it", (TimeSpan?)TimeSpan.FromSeconds(7)), (error.Code, error.Status, error.Help!, error.RetryAfter));
        Check.Equal("1 fault\n  a.mtr:3:1: no (yes)", error.Message);
        Check.Equal(3, error.Diagnostics[0].Line);
        Check.Equal(7, error.Problem!.OtherMembers!["extra"].GetInt32());
    }

    [Test]
    public async Task Not_found_names_the_namespace_and_where_it_came_from()
    {
        await using var server = new ScriptedServer((request, answer) => request.Path == "/v1/whoami"
            ? answer.JsonAsync("""{"id":"u","name":"ada","role":"user","via":"key","defaultNamespace":"mine"}""")
            : answer.ProblemAsync(404, "notFound", "no capsule 'c' in namespace 'mine'"));
        await using var mt = server.Client(ns: null);
        Check.Equal(null, mt.DefaultNamespace);
        for (var i = 0; i < 3; i++)
        {
            var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Capsules.GetAsync(null, "c"));
            Check.Equal("no capsule 'c' in namespace 'mine' (namespace 'mine' is from your default on the server)", error.Message);
        }
        Check.Equal(1, server.Seen.Count(request => request.Path == "/v1/whoami"));
        Check.Equal(null, await mt.Secrets.GetByNameAsync("mine", "s"));
        var named = await Check.ThrowsAsync<MaitentoException>(() => mt.Capsules.GetAsync("other", "c"));
        Check.That(!named.Message.Contains("is from", StringComparison.Ordinal));
    }

    [Test]
    public async Task A_full_server_is_an_error_or_waited_for()
    {
        var tries = 0;
        await using var server = new ScriptedServer((_, answer) => ++tries % 2 == 1
            ? answer.ProblemAsync(429, "capacityExceeded", "full", "Retry-After: 1\r\n") : answer.JsonAsync(Run, 201));
        await using var mt = server.Client();
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.CapsuleProcesses.StartAsync(null, "c"));
        Check.Equal((ErrorCode.CapacityExceeded, (TimeSpan?)TimeSpan.FromSeconds(1)), (error.Code, error.RetryAfter));
        tries = 0;
        Check.Equal("r1", (await mt.CapsuleProcesses.StartAsync(null, "c", new() { WaitForCapacity = true })).Id);
    }

    [Test]
    public async Task Lists_come_page_by_page_up_to_the_limit()
    {
        await using var server = new ScriptedServer((request, answer) => answer.JsonAsync(
            request.Path.Contains("after=p2", StringComparison.Ordinal) ? """{"items":[{"id":"c"}],"next":null}""" : """{"items":[{"id":"a"},{"id":"b"}],"next":"p2"}"""));
        await using var mt = server.Client();
        Check.Same(["a", "b", "c"], (await mt.CapsuleProcesses.ListAsync(new() { Limit = null })).Select(run => run.Id));
        Check.Same(["a", "b"], (await mt.CapsuleProcesses.ListAsync(new() { Limit = 2, Status = RunStatus.Running, Mine = true })).Select(run => run.Id));
        Check.Equal("/v1/capsule-runs?status=Running&mine=true&limit=2", server.Seen.Last().Path);
    }

    [Test]
    public async Task A_download_goes_on_after_a_cut_and_notices_another_file()
    {
        var content = Enumerable.Range(0, 200_000).Select(i => (byte)(i * 7)).ToArray();
        var tag = "\"one\"";
        await using var server = new ScriptedServer(async (request, answer) =>
        {
            var from = request.Header("Range") is { } range ? int.Parse(range["bytes=".Length..^1], System.Globalization.CultureInfo.InvariantCulture) : 0;
            var rest = content[from..];
            var head = from == 0 ? "200 OK" : $"206 Partial Content\r\nContent-Range: bytes {from}-{content.Length - 1}/{content.Length}";
            await answer.RawAsync($"HTTP/1.1 {head}\r\nETag: {tag}\r\nContent-Length: {rest.Length}\r\n\r\n");
            var stops = from < 150_000;
            await answer.RawBytesAsync(rest[..(stops ? Math.Min(60_000, rest.Length) : rest.Length)]);
            if (stops)
                answer.Cut();
        });
        await using var mt = server.Client();
        var files = mt.VirtualFileSystems.OpenById("v");
        Check.That((await files.ReadAsync("/f")).AsSpan().SequenceEqual(content));
        Check.That(server.Seen.Count >= 3 && server.Seen.Last().Header("Range") is not null);
        var read = 0L;
        var error = await Check.ThrowsAsync<MaitentoException>(() => files.DownloadAsync("/f", new MemoryStream(), new Told(done =>
        {
            read = done;
            tag = "\"two\"";
        })));
        Check.Equal(ErrorCode.Conflict, error.Code);
        Check.That(read > 0 && read < content.Length);
    }

    [Test]
    public async Task An_upload_is_sent_again_from_where_the_stream_was()
    {
        var tries = 0;
        await using var server = new ScriptedServer((_, answer) => ++tries == 1
            ? answer.ProblemAsync(503, "unavailable", "starting") : answer.JsonAsync("""{"path":"/f","name":"f","type":"file","size":4}""", 201));
        await using var mt = server.Client();
        using var from = new MemoryStream("0123abcd"u8.ToArray()) { Position = 4 };
        Check.Equal(4, (await mt.VirtualFileSystems.OpenById("v").UploadAsync("/a b", from)).Size);
        Check.Same(["abcd", "abcd"], server.Seen.Select(request => request.Text));
        Check.Equal("/v1/vfs/v/files?path=%2Fa%20b", server.Seen.Last().Path);
    }

    [Test]
    public async Task A_command_is_sent_as_it_is_given()
    {
        await using var server = new ScriptedServer((_, answer) => answer.JsonAsync("""{"id":"c","runId":"r","status":"Queued"}""", 201));
        await using var mt = server.Client();
        await mt.CapsuleProcesses.RunCommandAsync("r", new CapsuleProcessRunCommandRequest
        {
            Command = "printf",
            Arguments = ["a  b", "$HOME", "", "é\n"],
            RunAsUser = "sandbox",
            MaxDuration = TimeSpan.FromMinutes(90),
            Async = true,
            Stdin = "",
            Environment = new Dictionary<string, string> { ["A"] = "b" },
        });
        await mt.CapsuleProcesses.RunCommandAsync("r", new CapsuleProcessRunCommandRequest { Command = "true" });
        var sent = server.Seen.ToList();
        Check.Equal(
            """{"command":"printf","arguments":["a  b","$HOME","","\u00E9\n"],"runAsUser":"sandbox","maxDuration":"01:30:00","async":true,"environment":{"A":"b"},"stdin":""}""",
            sent[0].Text);
        Check.Equal("""{"command":"true"}""", sent[1].Text);
    }

    private sealed class Told(Action<long> tell) : IProgress<long>
    {
        public void Report(long value) => tell(value);
    }
}
