#:package Maitento.Sdk@26.10.0

// Asks the analyst about the logs: dotnet run ask.cs [QUESTION]
using Maitento.Sdk;

await using var mt = MaitentoClient.CreateFromEnvironment();
var ns = mt.DefaultNamespace ?? "investigations";
if (await mt.Namespaces.GetByNameAsync(ns) == null) await mt.Namespaces.CreateAsync(ns);
var logs = await mt.VirtualFileSystems.GetByNameAsync(ns, "access-logs")
    ?? await mt.VirtualFileSystems.CreateAsync(ns, "access-logs");
await mt.VirtualFileSystems.WriteTextById(logs.Id, "/access.log", await File.ReadAllTextAsync("../logs/access.log"));
await mt.DeployAsync("../maitento", ns);

var run = await mt.Apps.RunAsync(ns, "analyst", new Dictionary<string, string>
{
    ["question"] = args.Length > 0 ? args[0] : "Which page failed most often?",
    ["rounds"] = "8",
});
foreach (var line in run.ConsoleOutputs) Console.WriteLine(line.Text.TrimEnd());
if (run.Status != RunStatus.Finished)
{
    Console.Error.WriteLine($"no answer: {run.FailureDetails}");
    return 1;
}
Console.WriteLine($"\nAnswer: {run.ReturnValue}");
return 0;
