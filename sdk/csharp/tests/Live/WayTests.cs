// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Live;

/// <summary>O-18: the way to the server is cut, or says nothing any more, while everything is waited for.</summary>
public sealed class WayTests
{
    [Test]
    public async Task The_way_is_cut_and_every_wait_ends_as_it_ended()
    {
        foreach (var withEvents in new[] { false, true })
        {
            await using var relay = new Relay(LiveServer.Url);
            var ns = await LiveServer.MakeBenchAsync();
            await using var mt = LiveServer.Client(ns, relay.Url);
            await using var events = withEvents ? await mt.Events.OpenAsync() : null;
            var all = await BeginAsync(mt);
            relay.Cut();
            await Task.Delay(1500);
            relay.Open();
            await JudgeAsync(mt, all);
        }
    }

    [Test]
    public async Task The_way_falls_silent_and_every_wait_ends_as_it_ended()
    {
        await using var relay = new Relay(LiveServer.Url);
        var ns = await LiveServer.MakeBenchAsync();
        await using var mt = LiveServer.Client(ns, relay.Url, silence: 2);
        await using var events = await mt.Events.OpenAsync();
        var all = await BeginAsync(mt);
        relay.Mute();
        await JudgeAsync(mt, all);
    }

    [Test]
    public async Task Live_output_outlives_a_cut()
    {
        await using var relay = new Relay(LiveServer.Url);
        await using var bench = await Bench.StartAsync(url: relay.Url);
        var heard = "";
        var result = await bench.Mt.CapsuleProcesses.RunCommandAndWaitAsync(bench.Id, new()
        {
            Command = "echo ran >> /tmp/ran; echo a€; sleep 3; echo b; exit 3",
            OnOutput = piece =>
            {
                heard += piece.Text;
                if (piece.Text.StartsWith('a'))
                {
                    relay.Cut();
                    _ = Task.Delay(800).ContinueWith(_ => relay.Open(), TaskScheduler.Default);
                }
            },
        });
        Check.Equal((3, "a€\nb\n", "a€\nb\n"), (result.ExitCode!.Value, result.OutputStandard, heard));
        Check.Equal("ran\n", (await bench.RunAsync("cat /tmp/ran")).OutputStandard);
    }

    [Test]
    public async Task A_way_that_stays_shut_is_told_as_unknown_and_the_command_ran_once()
    {
        await using var relay = new Relay(LiveServer.Url);
        await using var bench = await Bench.StartAsync();
        await using var mt = new MaitentoClient(new()
        {
            Url = relay.Url,
            ApiKey = Environment.GetEnvironmentVariable("MAITENTO_API_KEY"),
            Patience = TimeSpan.FromSeconds(2),
        });
        var wait = mt.CapsuleProcesses.RunCommandAndWaitAsync(bench.Id, new() { Command = "echo ran >> /tmp/once; sleep 2; exit 3" });
        await Check.UntilAsync(async () => (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Count == 1);
        relay.Cut();
        var error = await Check.ThrowsAsync<MaitentoException>(() => wait);
        Check.Equal(ErrorCode.OutcomeUnknown, error.Code);
        Check.Contains("outcome unknown", error.Message);
        var command = (await bench.Mt.CapsuleProcesses.ListCommandsAsync(bench.Id)).Single();
        Check.Equal(3, (await bench.Mt.CapsuleProcesses.WaitForCommandAsync(bench.Id, command.Id)).ExitCode);
        Check.Equal("ran\n", (await bench.RunAsync("cat /tmp/once")).OutputStandard);
    }

    private sealed record Waits(string RunId, Task<CapsuleCommand> Command, Task<CapsuleRun> Run);

    private static async Task<Waits> BeginAsync(MaitentoClient mt)
    {
        var stay = await mt.CapsuleProcesses.StartAsync(null, "stay");
        await mt.CapsuleProcesses.WaitUntilReadyAsync(stay.Id);
        var command = mt.CapsuleProcesses.RunCommandAndWaitAsync(stay.Id, new() { Command = "echo ran >> /tmp/ran; sleep 4; exit 3", Async = true });
        var run = mt.Capsules.RunAsync(null, "once", new() { Environment = new Dictionary<string, string> { ["CODE"] = "5" } });
        await Check.UntilAsync(async () => (await mt.CapsuleProcesses.ListCommandsAsync(stay.Id)).Count == 1);
        await Check.UntilAsync(async () => (await mt.CapsuleProcesses.ListAsync(new() { Namespace = mt.DefaultNamespace, Capsule = "once" })).Count == 1);
        return new Waits(stay.Id, command, run);
    }

    private static async Task JudgeAsync(MaitentoClient mt, Waits all)
    {
        Check.Equal(3, (await all.Command).ExitCode);
        var run = await all.Run;
        Check.Equal(RunStatus.Error, run.Status);
        Check.Contains("exit code 5", run.FailureDetails);
        Check.Equal("ran\n", (await mt.CapsuleProcesses.RunCommandAndWaitAsync(all.RunId, new() { Command = "cat /tmp/ran" })).OutputStandard);
        Check.Equal("ran\n", await mt.VirtualFileSystems.Open(null, "work").ReadTextAsync("/ran"));
        await mt.CapsuleProcesses.TerminateAsync(all.RunId);
    }
}
