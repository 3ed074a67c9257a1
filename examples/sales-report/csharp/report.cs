#:package Maitento.Sdk@26.10.0

// Puts the takings of the fruit stalls into a file system, has a capsule sum them up, and prints the report.
using Maitento.Sdk;

await using var mt = MaitentoClient.CreateFromEnvironment();
var ns = mt.DefaultNamespace ?? "demo";

// A capsule that mounts a file system is deployed after it was made. What is there already is left as it is.
if (await mt.Namespaces.GetByNameAsync(ns) == null) await mt.Namespaces.CreateAsync(ns);
var data = await mt.VirtualFileSystems.GetByNameAsync(ns, "sales-data")
    ?? await mt.VirtualFileSystems.CreateAsync(ns, "sales-data");

foreach (var name in new[] { "market.csv", "report.py" })
{
    await mt.VirtualFileSystems.WriteTextById(data.Id, $"/{name}", await File.ReadAllTextAsync($"../data/{name}"));
}
await mt.DeployAsync("../maitento", ns);

// The capsule runs its script and ends. A run that went wrong says why.
var run = await mt.Capsules.RunAsync(ns, "sales-report");
if (run.Status != RunStatus.Finished)
{
    Console.Error.WriteLine($"the capsule ended {run.Status}: {run.FailureDetails}");
    return 1;
}
Console.WriteLine(await mt.VirtualFileSystems.ReadTextById(data.Id, "/report.md"));
return 0;
