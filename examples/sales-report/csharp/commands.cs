#:package Maitento.Sdk@26.10.0

// Sends commands to a capsule that stays up. Run report.cs first: it makes the file system that the capsule mounts.
using Maitento.Entities.Capsules;
using Maitento.Sdk;

await using var mt = MaitentoClient.CreateFromEnvironment();
var ns = mt.DefaultNamespace ?? "demo";
await mt.DeployAsync("../maitento", ns);

// It need not have started: a command waits for its turn.
var capsule = await mt.CapsuleProcesses.StartAsync(ns, "workbench", new CapsuleProcessStartRequest());

// Each argument arrives as the one word that it is here, whatever is in it.
var cherries = await mt.CapsuleProcesses.RunCommandAndWaitAsync(capsule.Id, new CapsuleProcessRunCommandRequest
{
    Command = "grep",
    Arguments = ["--count", "-e", ",Cherries,", "-e", "no $HOME, no 'quotes'", "/mnt/data/market.csv"],
});
Console.WriteLine($"exit code {cherries.ExitCode}: {cherries.OutputStandard.TrimEnd()}");

// A command that fails is a result, too. The file system is for the capsule's default user alone.
var denied = await mt.CapsuleProcesses.RunCommandAndWaitAsync(capsule.Id, new CapsuleProcessRunCommandRequest
{
    Command = "cat",
    Arguments = ["/mnt/data/market.csv"],
    RunAsUser = "sandbox",
});
Console.WriteLine($"exit code {denied.ExitCode}: {denied.OutputError.TrimEnd()}");

await mt.CapsuleProcesses.TerminateAsync(capsule.Id);

// A command that can't come to its end any more is an error, which says why.
try
{
    await mt.CapsuleProcesses.RunCommandAndWaitAsync(capsule.Id, new CapsuleProcessRunCommandRequest { Command = "true" });
}
catch (CapsuleCommandAbortedException error)
{
    Console.WriteLine($"too late: {error.Reason}");
}
