// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Text;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Live;

public sealed class CommandTests
{
    [Test]
    public async Task A_command_is_sent_before_the_run_is_ready_and_its_result_is_all_there() // 39, 40, 44, 46, 47, 52
    {
        await using var bench = await Bench.StartAsync();
        var listing = await bench.RunAsync("echo out; echo err >&2; exit 3");
        Check.Equal((CommandStatus.Error, EndReason.Exited, 3), (listing.Status, listing.EndReason!.Value, listing.ExitCode!.Value));
        Check.Equal(("out\n", "err\n", ""), (listing.OutputStandard, listing.OutputError, listing.FailureDetails));
        Check.Equal(RunStatus.Running, (await bench.Mt.CapsuleProcesses.GetAsync(bench.Id)).Status);
        var denied = await bench.RunAsync("cat", ["/mnt/work/none"], user: "sandbox");
        Check.Equal("cat: /mnt/work/none: Permission denied\n", denied.OutputError);
        Check.Equal("Finished", $"{(await bench.RunAsync("true")).Status}");
    }

    [Test]
    public async Task Arguments_arrive_byte_for_byte() // O-12
    {
        string[] words = ["a b", "$HOME", "$(id)", "x'y", "\"", "", "l1\nl2", "*", "\\", ";", "~", "!x", "é", "-n", "\t", "😀"];
        await using var bench = await Bench.StartAsync();
        foreach (var user in new[] { null, "sandbox" })
        {
            var result = await bench.RunAsync("printf", ["[%s]\\n", .. words], user: user);
            Check.Equal(string.Concat(words.Select(word => $"[{word}]\n")), result.OutputStandard);
        }
        var text = await bench.RunAsync("echo \"a  b\" | tr a-z A-Z; false");
        Check.Equal(("A  B\n", 1), (text.OutputStandard, text.ExitCode!.Value));
    }

    [Test]
    public async Task Signals_timeouts_and_exit_codes_are_told_apart() // O-08, O-09
    {
        await using var bench = await Bench.StartAsync();
        foreach (var (line, code, reason, signal) in new[]
        {
            ("kill -9 $$", 137, EndReason.Signaled, (int?)9), ("kill -15 $$", 143, EndReason.Signaled, 15), ("kill -11 $$", 139, EndReason.Signaled, 11),
            ("kill -6 $$", 134, EndReason.Signaled, 6), ("exit 137", 137, EndReason.Exited, null), ("exit 124", 124, EndReason.Exited, null),
        })
        {
            var result = await bench.RunAsync("sh", ["-c", line]);
            Check.Equal((line, code, reason, signal, CommandStatus.Error), (line, result.ExitCode!.Value, result.EndReason!.Value, result.Signal, result.Status));
            Check.Equal("", result.OutputError);
        }
        var late = await bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(
            bench.Id, new() { Command = "sleep", Arguments = ["30"], MaxDuration = TimeSpan.FromSeconds(1) });
        Check.Equal((EndReason.Timeout, 1000L, CommandStatus.Error), (late.EndReason!.Value, late.LimitMs!.Value, late.Status));
        Check.That(late.ExitCode is 143 or 137);
    }

    [Test]
    public async Task Output_of_many_wide_characters_is_whole_however_it_is_read() // O-05
    {
        await using var bench = await Bench.StartAsync();
        for (var lead = 0; lead < 4; lead++)
        {
            var wanted = new string('x', lead) + string.Concat(Enumerable.Repeat("€", 20_000));
            var live = new StringBuilder();
            var result = await bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(bench.Id, new()
            {
                Command = "python3",
                Arguments = ["-c", $"print('x' * {lead} + '€' * 20000, end='')"],
                OnOutput = piece => live.Append(piece.Text),
            });
            Check.Equal(wanted, result.OutputStandard);
            Check.Equal(wanted, live.ToString());
            Check.Equal(null, result.OutputStandardFullLength);
        }
        var many = await bench.RunAsync("python3", ["-c", "print('😀' * 70000, end='')"]);
        Check.Equal((65_536, 70_000L), (many.OutputStandard.EnumerateRunes().Count(), many.OutputStandardFullLength!.Value));
        Check.That(many.OutputStandard.EnumerateRunes().All(rune => rune.Value == 0x1F600));
        var odd = await bench.RunAsync("printf", ["\\377\\376abc\\n"]);
        Check.Equal(("\uFFFD\uFFFDabc\n", 0), (odd.OutputStandard, odd.ExitCode!.Value));
    }

    [Test]
    public async Task Output_comes_as_it_is_printed()
    {
        await using var bench = await Bench.StartAsync();
        var told = new List<(CommandStream, string)>();
        var result = await bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(bench.Id, new()
        {
            // The second line comes only when the first was heard.
            Command = "echo one; until [ -e /tmp/heard ]; do sleep 0.05; done; echo two >&2; exit 4",
            OnOutput = piece =>
            {
                told.Add((piece.Stream, piece.Text));
                if (piece.Text == "one\n")
                    bench.Mt.CapsuleProcesses.Files(bench.Id).WriteTextAsync("/tmp/heard", "").GetAwaiter().GetResult();
            },
        });
        Check.Equal(4, result.ExitCode);
        Check.Same([(CommandStream.Standard, "one\n"), (CommandStream.Error, "two\n")], told);
        var error = await Check.ThrowsAsync<InvalidOperationException>(() => bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(
            bench.Id, new() { Command = "echo x", OnOutput = _ => throw new InvalidOperationException("mine") }));
        Check.Equal("mine", error.Message);
    }

    [Test]
    public async Task To_cancel_a_wait_leaves_the_command_alone()
    {
        await using var bench = await Bench.StartAsync();
        using var stop = new CancellationTokenSource();
        var wait = bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(bench.Id, new() { Command = "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.05; done; exit 5" }, stop.Token);
        await Check.UntilAsync(async () => (await bench.Mt.CapsuleProcesses.Files(bench.Id).ListAsync("/tmp")).Any(file => file.Name == "begun"));
        await stop.CancelAsync();
        await Check.ThrowsAsync<OperationCanceledException>(() => wait);
        await bench.Mt.CapsuleProcesses.Files(bench.Id).WriteTextAsync("/tmp/go", "");
        var command = (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Single();
        Check.Equal(5, (await bench.Mt.CapsuleProcesses.WaitForCommandAsync(bench.Id, command.Id)).ExitCode);
    }

    [Test]
    public async Task A_run_that_ends_first_aborts_its_commands_with_the_reason() // 57, 58, 58a
    {
        await using var bench = await Bench.StartAsync();
        var sleeps = bench.RunAsync("sleep 300");
        await Check.UntilAsync(async () => (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Count == 1);
        var waits = new[] { sleeps, bench.RunAsync("echo queued") }; // in this order
        await Check.UntilAsync(async () => (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Count == 2);
        await bench.Mt.CapsuleProcesses.TerminateAsync(bench.Id);
        foreach (var wait in waits)
        {
            var aborted = await Check.ThrowsAsync<CapsuleCommandAbortedException>(() => wait);
            Check.Contains("stopped", aborted.Reason);
            Check.Contains(aborted.Reason, aborted.Message);
            Check.Equal((ErrorCode.RunEnded, CommandStatus.Aborted, bench.Id), (aborted.Code, aborted.Command!.Status, aborted.Run!.Id));
            Check.Contains("stopped by", aborted.Run.FailureDetails);
        }
        var late = await Check.ThrowsAsync<CapsuleCommandAbortedException>(() => bench.RunAsync("true"));
        Check.Equal((null, EndReason.Terminated), (late.Command, late.Run!.EndReason!.Value));
        Check.Equal(2, (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Count);

        var wrong = await bench.Mt.CapsuleProcesses.StartAsync(null, "wrong");
        var failed = await Check.ThrowsAsync<CapsuleCommandAbortedException>(
            () => bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(wrong.Id, new() { Command = "true" }));
        Check.Contains("Startup command failed: sleep 1; echo why >&2; exit 9 - ", failed.Run!.FailureDetails);
        Check.Equal(RunStatus.Error, failed.Run.Status);
    }

    [Test]
    public async Task A_run_that_is_out_of_time_aborts_its_commands_with_the_reason() // 36, 37
    {
        await using var bench = await Bench.StartAsync(TimeSpan.FromSeconds(3));
        var aborted = await Check.ThrowsAsync<CapsuleCommandAbortedException>(() => bench.RunAsync("sleep 300"));
        Check.Contains("out of time", aborted.Reason);
        Check.Equal((RunStatus.Finished, EndReason.Timeout), (aborted.Run!.Status, aborted.Run.EndReason!.Value));
    }

    [Test]
    public async Task A_run_may_be_extended_and_waited_for()
    {
        await using var bench = await Bench.StartAsync();
        Check.Equal(RunStatus.Running, (await bench.Mt.CapsuleProcesses.WaitUntilReadyAsync(bench.Id)).Status);
        Check.Equal(TimeSpan.FromMinutes(30), (await bench.Mt.CapsuleProcesses.ExtendAsync(bench.Id, TimeSpan.FromMinutes(30))).MaxDuration);
        var since = Stopwatch.GetTimestamp();
        Check.Equal(RunStatus.Running, (await bench.Mt.CapsuleProcesses.WaitAsync(bench.Id, TimeSpan.FromSeconds(1))).Status);
        Check.That(Stopwatch.GetElapsedTime(since) < TimeSpan.FromSeconds(10));
        Check.That((await bench.Mt.CapsuleProcesses.GetStoryAsync(bench.Id)).Any(entry => entry.Kind == "ready"));
    }

    [Test]
    public async Task With_a_stream_open_a_thousand_commands_are_waited_for_at_once() // 56
    {
        await using var bench = await Bench.StartAsync();
        await using var events = await bench.Mt.Events.OpenAsync();
        const int count = 1000;
        var results = await Task.WhenAll(Enumerable.Range(0, count).Select(i => bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(
            bench.Id, new() { Command = $"exit {i % 200}", Async = false })));
        for (var i = 0; i < count; i++)
            Check.Equal((int?)(i % 200), results[i].ExitCode);
    }
}
