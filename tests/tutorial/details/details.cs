#:package Maitento.Sdk@26.10.0

// Runs what an argument names and prints how its run ended: capsule NAME, or app NAME QUESTION.
using Maitento.Sdk;

await using var mt = MaitentoClient.CreateFromEnvironment();
var ns = mt.DefaultNamespace ?? "tutorials";
if (args[0] == "capsule")
{
    var run = await mt.Capsules.RunAsync(ns, args[1]);
    Console.WriteLine($"{run.Status}\n{run.FailureDetails}");
}
else
{
    var run = await mt.Apps.RunAsync(args[1], new Dictionary<string, string> { ["question"] = args[2], ["namespaceName"] = ns });
    Console.WriteLine($"{run.Status}\n{run.FailureDetails}");
}
