// SPDX-License-Identifier: Apache-2.0
using System.Text;
using System.Text.Json.Nodes;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Live;

/// <summary>Namespaces, secrets, apps, users, events, shells, and the server itself.</summary>
public sealed class ThingTests
{
    [Test]
    public async Task What_is_not_there_is_made_and_found_then() // 8, 9
    {
        var ns = LiveServer.NewName("cs");
        await using var mt = LiveServer.Client(ns);
        Check.Equal(ns, mt.DefaultNamespace);
        for (var round = 0; round < 2; round++)
        {
            if (await mt.Namespaces.GetByNameAsync(ns) == null)
                await mt.Namespaces.CreateAsync(ns);
            var vfs = await mt.VirtualFileSystems.GetByNameAsync(ns, "sales") ?? await mt.VirtualFileSystems.CreateAsync(ns, "sales");
            Check.Equal("sales", vfs.Name);
        }
        var error = await Check.ThrowsAsync<MaitentoException>(() => LiveServer.DeployAsync(mt, new() { ["capsules/c.mtr"] = "vfs = [{ vfs = @ref(\"sale\") mountName = \"m\" }]\n" }));
        Check.Equal(ErrorCode.DeployFailed, error.Code);
        Check.Contains("sale", error.Message);
        Check.Equal("capsules/c.mtr", error.Diagnostics[0].File);
        await mt.VirtualFileSystems.DeleteAsync(null, "sales");
        await mt.Namespaces.DeleteAsync(ns);
    }

    [Test]
    public async Task Secrets_go_in_and_never_come_back()
    {
        await using var mt = LiveServer.Client(await LiveServer.SharedAsync());
        var name = LiveServer.NewName("s");
        await mt.Secrets.CreateAsync(null, name, "CANARY-7f3a");
        await mt.Secrets.SetAsync(null, name, new byte[] { 255, 0, 1 });
        var run = await mt.CapsuleProcesses.StartAsync(null, "stay", new() { Secrets = [new() { Secret = name, MountName = "s" }] });
        var read = await mt.CapsuleProcesses.RunCommandAndWaitAsync(run.Id, new() { Command = "od -An -tx1 /mnt/secrets/s" });
        Check.Equal(" ff 00 01\n", read.OutputStandard);
        var denied = await mt.CapsuleProcesses.RunCommandAndWaitAsync(run.Id, new() { Command = "cat /mnt/secrets/s", RunAsUser = "sandbox" });
        Check.Contains("Permission denied", denied.OutputError);
        Check.Equal(ErrorCode.Conflict, (await Check.ThrowsAsync<MaitentoException>(() => mt.Secrets.DeleteAsync(null, name))).Code);
        await mt.CapsuleProcesses.TerminateAsync(run.Id);
        await mt.CapsuleProcesses.WaitAsync(run.Id);
        await mt.Secrets.DeleteAsync(null, name);
        Check.Equal(null, await mt.Secrets.GetByNameAsync(null, name));
    }

    [Test]
    public async Task Apps_run_and_tell_what_they_print() // 73, 83, 84
    {
        await using var mt = LiveServer.Client(await LiveServer.SharedAsync());
        var run = await mt.Apps.RunAsync("tell", new Dictionary<string, string> { ["WHO"] = "Ada" });
        Check.Equal(("told Ada", RunStatus.Finished), ($"{run.ReturnValue}", run.Status));
        Check.Same(["héllo Ada", "bye"], run.ConsoleOutputs.Select(line => line.Text.TrimEnd()));
        var heard = new List<string>();
        run = await mt.Apps.RunAsync(null, "tell", new AppStartRequest { Inputs = new JsonObject { ["who"] = "Bob" }, OnConsole = line => heard.Add(line.Text) });
        Check.Same(["héllo Bob\n", "bye\n"], heard);
        var error = await Check.ThrowsAsync<MaitentoException>(() => mt.Apps.RunAsync("tell"));
        Check.Equal(ErrorCode.BadField, error.Code);
        var again = await mt.AppRuns.RerunAsync(run.Id);
        Check.Equal(run.Id, again.RerunOf);
        Check.Equal("told Bob", $"{(await mt.AppRuns.WaitAsync(again.Id)).ReturnValue}");
    }

    [Test]
    public async Task Events_tell_what_happens()
    {
        var ns = await LiveServer.SharedAsync();
        await using var bench = await Bench.StartAsync();
        await using var own = await bench.Mt.Events.OpenAsync(new() { Run = bench.Id, Output = true });
        var sent = await bench.Mt.CapsuleProcesses.RunCommandAsync(bench.Id, new() { Command = "echo 'hé €'; exit 3" });
        var text = "";
        await foreach (var told in own)
        {
            if (told is OutputEvent { Stream: "standard" } output && output.CommandId == sent.Id)
                text += output.Text;
            if (told is ChangeEvent { Kind: "command", Change: "ended" } ended && ended.Id == sent.Id)
            {
                Check.Equal((3, EndReason.Exited, "Error", ns), (ended.ExitCode!.Value, ended.EndReason!.Value, ended.Status!, ended.Namespace!));
                break;
            }
        }
        Check.Equal("hé €\n", text); // all of it before the end
        await using var kept = await bench.Mt.Events.OpenAsync(new() { Last = 1000, Run = bench.Id, Follow = false, Kinds = ["command"] });
        var changes = new List<string>();
        await foreach (var told in kept)
            changes.Add(((ChangeEvent)told).Change);
        Check.That(changes.Contains("ended"));
    }

    [Test]
    public async Task A_shell_is_opened_typed_into_and_read()
    {
        await using var bench = await Bench.StartAsync();
        await bench.Mt.CapsuleProcesses.WaitUntilReadyAsync(bench.Id);
        var shell = await bench.Mt.Shells.StartAsync(bench.Id, "sandbox", columns: 120, rows: 40);
        var screen = ReadAsync();
        await bench.Mt.Shells.ResizeAsync(bench.Id, shell.Id, 100, 30);
        await bench.Mt.Shells.TypeAsync(bench.Id, shell.Id, "stty size; id -un; exit 3\r");
        var shown = await screen;
        Check.Contains("30 100", shown);
        Check.Contains("sandbox", shown);
        var ended = await bench.Mt.Shells.GetAsync(bench.Id, shell.Id);
        Check.Equal((3, EndReason.Exited), (ended.ExitCode!.Value, ended.EndReason!.Value));

        async Task<string> ReadAsync()
        {
            var bytes = new MemoryStream();
            await foreach (var piece in bench.Mt.Shells.OutputAsync(bench.Id, shell.Id))
                bytes.Write(piece.Span);
            return Encoding.UTF8.GetString(bytes.ToArray());
        }
    }

    [Test]
    public async Task Users_keys_and_the_server_are_told()
    {
        await using var mt = LiveServer.Client(await LiveServer.SharedAsync());
        Check.Equal("maitento", (await mt.Server.InfoAsync()).Product);
        Check.Equal("ok", (await mt.Server.HealthAsync()).Status);
        Check.That((await mt.Server.DoctorAsync()).Checks.Count > 0);
        Check.Equal("3.1.0", (await mt.Server.DescriptionAsync()).GetProperty("openapi").GetString());
        Check.That((await mt.Images.ListAsync()).Any(image => image.Name == "slim"));
        Check.That((await mt.Providers.GetAsync("deepseek")).NeedsKey);
        var user = await mt.Users.CreateAsync(LiveServer.NewName("u"), expires: DateTimeOffset.UtcNow.AddDays(1));
        await using (var theirs = new MaitentoClient(new() { Url = LiveServer.Url, ApiKey = user.Key }))
        {
            Check.Equal(user.Name, (await theirs.WhoamiAsync()).Name);
            Check.Equal(ErrorCode.Forbidden, (await Check.ThrowsAsync<MaitentoException>(() => theirs.Users.ListAsync())).Code);
            var key = await theirs.Keys.CreateAsync("laptop", DateTimeOffset.UtcNow.AddHours(1));
            Check.That((await theirs.Keys.ListAsync()).Any(one => one.Id == key.Id && one.Expires is not null));
            await theirs.Keys.DeleteAsync(key.Id);
        }
        await mt.Users.DeleteAsync(user.Name);
        await using var nobody = new MaitentoClient(new() { Url = LiveServer.Url, ApiKey = "mt_wrong" });
        var error = await Check.ThrowsAsync<MaitentoException>(() => nobody.WhoamiAsync());
        Check.Equal((ErrorCode.Unauthenticated, 401), (error.Code, error.Status!.Value));
        Check.That(!error.Message.Contains("mt_wrong", StringComparison.Ordinal));
    }
}
