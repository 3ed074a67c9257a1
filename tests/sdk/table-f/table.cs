#:package Maitento.Sdk@26.10.0
// SPDX-License-Identifier: Apache-2.0
// The calls of the three SDKs that are promised by name, one after the other: table.ts, table.py and table.cs print the same.
using Maitento.Entities.Capsules;
using Maitento.Sdk;

var ns = args[0];
await using var mt = MaitentoClient.CreateFromEnvironment();
static string Repr(string text) => $"'{text.Replace("\n", "\\n")}'";
static string List(IEnumerable<string> texts) => $"[{string.Join(", ", texts.Select(Repr))}]";

Console.WriteLine($"default namespace {mt.DefaultNamespace == ns}");
Console.WriteLine($"found {await mt.Namespaces.GetByNameAsync(ns) is not null}");
if (await mt.Namespaces.GetByNameAsync(ns) is null)
    await mt.Namespaces.CreateAsync(ns);
Console.WriteLine($"found {(await mt.Namespaces.GetByNameAsync(ns))?.Name == ns}");
var vfs = await mt.VirtualFileSystems.GetByNameAsync(ns, "sales") ?? await mt.VirtualFileSystems.CreateAsync(ns, "sales");
Console.WriteLine($"file system {(await mt.VirtualFileSystems.GetByNameAsync(ns, "sales"))?.Name}");
await mt.VirtualFileSystems.WriteTextById(vfs.Id, "/sales.csv", "order,product\n1001,Desk lamp\n");
Console.WriteLine($"text {(await mt.VirtualFileSystems.ReadTextById(vfs.Id, "/sales.csv")).Length}");
await mt.Secrets.CreateAsync(ns, "token", "s3cret");
Console.WriteLine($"deployed {(await mt.DeployAsync("maitento", ns)).Created.Count}");
if ((await mt.DeployAsync("maitento")).Created.Count != 0)
    Console.WriteLine("deployed twice");

var run = await mt.Capsules.RunAsync(ns, "report");
Console.WriteLine($"report {run.Status} {(await mt.VirtualFileSystems.ReadTextById(vfs.Id, "/report.md")).Trim()}");

var capsule = await mt.CapsuleProcesses.StartAsync(ns, "bench", new CapsuleProcessStartRequest());
var listing = await mt.CapsuleProcesses.RunCommandAndWaitAsync(capsule.Id, new CapsuleProcessRunCommandRequest
{
    Command = "echo",
    Arguments = ["a  b", "$HOME"],
    RunAsUser = "sandbox",
});
Console.WriteLine($"command {listing.ExitCode} {Repr(listing.OutputStandard)} {Repr(listing.OutputError)} {listing.Status}");
var failed = await mt.CapsuleProcesses.RunCommandAndWaitAsync(
    capsule.Id, new CapsuleProcessRunCommandRequest { Command = "cat /nowhere; exit 3" });
Console.WriteLine($"command {failed.ExitCode} {Repr(failed.OutputStandard)} {Repr(failed.OutputError)} {failed.Status}");
var slow = await mt.CapsuleProcesses.RunCommandAsync(
    capsule.Id, new CapsuleProcessRunCommandRequest { Command = "until [ -e /tmp/go ]; do sleep 0.05; done; echo slow", Async = true });
var touched = await mt.CapsuleProcesses.RunCommandAndWaitAsync(
    capsule.Id, new CapsuleProcessRunCommandRequest { Command = "touch", Arguments = ["/tmp/go"] });
Console.WriteLine($"sent {slow.ExitCode is null} {touched.ExitCode}");
var followed = "";
await foreach (var chunk in mt.CapsuleProcesses.OutputAsync(capsule.Id, slow.Id, follow: true))
    followed += chunk.Text;
Console.WriteLine($"followed {followed.Trim()}");
Console.WriteLine($"read later {(await mt.CapsuleProcesses.GetCommandAsync(capsule.Id, slow.Id)).OutputStandard.Trim()}");

var started = await mt.CapsuleProcesses.StartAsync(ns, "bench", new CapsuleProcessStartRequest
{
    Version = 1,
    Environment = new Dictionary<string, string> { ["WORD"] = "x y" },
    MaxDuration = TimeSpan.FromMinutes(6),
    Startup = [new StartupCommand { Command = "cp", Arguments = ["/mnt/secrets/word", "/mnt/more/copied"] }],
    Vfs = [new VfsMount { Vfs = "sales", MountName = "more" }],
    Secrets = [new SecretMount { Secret = "token", MountName = "word" }],
    Labels = new Dictionary<string, string> { ["ticket"] = "4711" },
});
Console.WriteLine($"options {started.Version} {started.MaxDuration:hh\\:mm\\:ss} {started.Labels["ticket"]}");
var copied = await mt.CapsuleProcesses.RunCommandAndWaitAsync(
    started.Id, new CapsuleProcessRunCommandRequest { Command = "cat /mnt/more/copied; echo \" $WORD\"" });
Console.WriteLine($"options {copied.OutputStandard.Trim()}");
Console.WriteLine($"extended {(await mt.CapsuleProcesses.ExtendAsync(started.Id, TimeSpan.FromMinutes(20))).MaxDuration:hh\\:mm\\:ss}");
var inside = mt.CapsuleProcesses.Files(started.Id);
await inside.WriteTextAsync("/tmp/note", "Träger\n");
await inside.WriteAsync("/tmp/raw", new byte[] { 0, 255 });
var names = (await inside.ListAsync("/tmp")).Select(file => file.Name);
Console.WriteLine($"files {(await inside.ReadTextAsync("/tmp/note")).Trim()} {(await inside.ReadAsync("/tmp/raw")).Length} {List(names)}");

await using (var events = await mt.Events.OpenAsync())
{
    var exit = await mt.CapsuleProcesses.RunCommandAndWaitAsync(started.Id, new CapsuleProcessRunCommandRequest { Command = "exit 4" });
    Console.WriteLine($"events {exit.ExitCode}");
    await foreach (var told in events)
    {
        if (told is ChangeEvent { Kind: "command", Change: "ended" } ended)
        {
            Console.WriteLine($"event {ended.ExitCode}");
            break;
        }
    }
}

var app = await mt.Apps.RunAsync("greet", new Dictionary<string, string> { ["name"] = "Ada" });
Console.WriteLine($"app {List(app.ConsoleOutputs.Select(output => output.Text))} {app.ReturnValue}");

await mt.CapsuleProcesses.TerminateAsync(started.Id);
await mt.CapsuleProcesses.TerminateAsync(capsule.Id);
try
{
    await mt.CapsuleProcesses.RunCommandAndWaitAsync(started.Id, new CapsuleProcessRunCommandRequest { Command = "true" });
}
catch (CapsuleCommandAbortedException error)
{
    var gone = error.Command is null || error.Command.Status == CommandStatus.Aborted; // it may have been sent a moment before the end
    Console.WriteLine($"aborted {error.Reason.Length > 0} {gone} {error.Run?.FailureDetails.StartsWith("stopped by")}");
}
try
{
    await mt.CapsuleProcesses.StartAsync(ns, "nothing", new CapsuleProcessStartRequest());
}
catch (MaitentoException error)
{
    Console.WriteLine($"error {error.Code} {error.Status}");
}
