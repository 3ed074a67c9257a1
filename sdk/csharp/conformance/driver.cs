// SPDX-License-Identifier: Apache-2.0
#:package Maitento.Sdk@26.10.0
// Runs files of sdk/conformance against the server of the environment, with the package as users have it, and prints TAP.
// sdk/conformance/README.md says what the files hold.
using System.Collections;
using System.Diagnostics;
using System.Globalization;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using Maitento.Entities.Capsules;
using Maitento.Sdk;

if (args.Length == 0)
{
    await Console.Error.WriteLineAsync("usage: driver FILE.json...");
    return 2;
}
var tap = new Tap();
foreach (var path in args)
    await new ThemeRun(JsonNode.Parse(await File.ReadAllTextAsync(path))!.AsObject(), tap).RunAsync();
Console.WriteLine($"1..{tap.Count}");
return tap.HasFailed ? 1 : 0;

/// <summary>What is printed.</summary>
internal sealed class Tap
{
    public int Count { get; private set; }

    public bool HasFailed { get; private set; }

    public void Tell(string name, string? fault, string? skipped = null)
    {
        Count++;
        HasFailed |= fault is not null;
        var outcome = fault is null ? "ok" : "not ok";
        Console.WriteLine($"{outcome} {Count} - {name}{(skipped is null ? "" : $" # SKIP {skipped}")}");
        foreach (var line in (fault ?? "").Split('\n', StringSplitOptions.RemoveEmptyEntries))
            Console.WriteLine($"# {line}");
    }
}

/// <summary>Something was not as the scenario wants it.</summary>
internal sealed class Fault(string message) : Exception(message);

/// <summary>One file.</summary>
internal sealed class ThemeRun(JsonObject theme, Tap tap)
{
    private readonly Dictionary<string, object?> _words = new()
    {
        ["unique"] = Guid.NewGuid().ToString("N")[..8],
        ["url"] = Environment.GetEnvironmentVariable("MAITENTO_URL"),
        ["provider"] = Environment.GetEnvironmentVariable("MT_PROVIDER"),
        ["stranger"] = Environment.GetEnvironmentVariable("MT_STRANGER"),
    };

    public async Task RunAsync()
    {
        var missing = Missing(theme);
        var setup = new Scenario(_words, [], Client());
        string? broken = null;
        try
        {
            if (missing is null)
                broken = await setup.RunAsync(Steps(theme, "setup"));
            foreach (var node in Steps(theme, "scenarios"))
            {
                var name = $"{theme["theme"]}: {node["name"]}";
                if ((missing ?? Missing(node.AsObject())) is { } lacking)
                    tap.Tell(name, null, $"no {lacking}");
                else if (broken is not null)
                    tap.Tell(name, $"setup: {broken}");
                else
                    tap.Tell(name, await new Scenario(new(setup.Saved), new(setup.Clients), setup.Client).RunAsync(Steps(node.AsObject(), "steps")));
            }
            foreach (var step in missing is null ? Steps(theme, "teardown") : [])
                await setup.RunAsync([step]); // whatever becomes of it
        }
        finally
        {
            foreach (var client in setup.Clients.Values.Append(setup.Client))
                await client.DisposeAsync();
        }
    }

    private static string? Missing(JsonObject node) => node["needs"]?.AsArray().Select(need => (string)need!)
        .FirstOrDefault(need => string.IsNullOrEmpty(Environment.GetEnvironmentVariable($"MT_{need.ToUpperInvariant()}")));

    private static IEnumerable<JsonNode> Steps(JsonObject node, string name) => node[name]?.AsArray().Select(step => step!) ?? [];

    private MaitentoClient Client() => theme["namespace"] is { } ns
        ? new MaitentoClient(new MaitentoClientOptions { Namespace = (string)new Values(_words).Of(ns)! })
        : MaitentoClient.CreateFromEnvironment();
}

/// <summary>Steps, one after the other, and what they saved.</summary>
internal sealed class Scenario(Dictionary<string, object?> saved, Dictionary<string, MaitentoClient> clients, MaitentoClient client)
{
    private readonly Dictionary<string, Task<Outcome>> _background = [];

    public Dictionary<string, object?> Saved { get; } = saved;

    /// <summary>Clients beside that of the file. They live as long as the program.</summary>
    public Dictionary<string, MaitentoClient> Clients { get; } = clients;

    public MaitentoClient Client { get; } = client;

    private Values Values => new(Saved);

    /// <summary>Null, or what was wrong.</summary>
    public async Task<string?> RunAsync(IEnumerable<JsonNode> steps)
    {
        var number = 0;
        foreach (var step in steps)
        {
            number++;
            try
            {
                await StepAsync(step.AsObject());
            }
            catch (Exception error)
            {
                return $"step {number}, {step["call"] ?? step["join"] ?? step["client"] ?? step["check"]}: {(error is Fault ? error.Message : error)}";
            }
        }
        return null;
    }

    private async Task StepAsync(JsonObject step)
    {
        if (step["call"] is { } call)
        {
            var on = step["on"] is { } name ? Clients[(string)name!] : Client;
            var with = step["with"] is { } given ? (Dictionary<string, object?>)Values.Of(given)! : [];
            if (step["background"] is { } background)
                _background[(string)background!] = Task.Run(() => CallAsync(on, (string)call!, with, step));
            else if (step["until"] is { } until)
                Judge(step, await UntilAsync(on, (string)call!, with, step, until.AsObject()));
            else
                Judge(step, await CallAsync(on, (string)call!, with, step));
        }
        else if (step["join"] is { } join)
        {
            Judge(step, await _background[(string)join!].WaitAsync(TimeSpan.FromMinutes(4)));
        }
        else if (step["client"] is { } added)
        {
            var with = step["with"] is { } given ? (Dictionary<string, object?>)Values.Of(given)! : [];
            Judge(step, await Outcome.OfAsync(() =>
            {
                var options = new MaitentoClientOptions { Url = Text(with, "url"), ApiKey = Text(with, "apiKey"), Namespace = Text(with, "namespace") };
                Clients[(string)added!] = new MaitentoClient(options);
                return Task.FromResult<object?>(null);
            }));
        }
        else
        {
            Match(step["expect"]!.AsObject(), Values.Of(step["check"]));
        }
    }

    private static string? Text(Dictionary<string, object?> with, string name) => with.GetValueOrDefault(name) as string;

    private async Task<Outcome> CallAsync(MaitentoClient on, string call, Dictionary<string, object?> with, JsonObject step)
    {
        var output = step["output"] is null ? null : new StringBuilder[] { new(), new() };
        var outcome = await Outcome.OfAsync(() => new Call(on, with, output).DoAsync(call));
        if (output is not null)
        {
            lock (Saved)
            {
                Saved[(string)step["output"]!] =
                    new Dictionary<string, object?> { ["standard"] = output[0].ToString(), ["error"] = output[1].ToString() };
            }
        }
        return outcome;
    }

    private async Task<Outcome> UntilAsync(MaitentoClient on, string call, Dictionary<string, object?> with, JsonObject step, JsonObject until)
    {
        var within = TimeSpan.FromSeconds((double?)step["within"] ?? 20);
        var since = Stopwatch.GetTimestamp();
        while (true)
        {
            var outcome = await CallAsync(on, call, with, step);
            try
            {
                if (outcome.Error is { } error)
                    throw new Fault(error.Message);
                Match(until, outcome.Result);
                return outcome;
            }
            catch (Fault fault) when (Stopwatch.GetElapsedTime(since) > within)
            {
                throw new Fault($"not within {within.TotalSeconds} s: {fault.Message}");
            }
            catch (Fault)
            {
                await Task.Delay(100);
            }
        }
    }

    private void Judge(JsonObject step, Outcome outcome)
    {
        if (step["error"] is { } wanted)
        {
            if (outcome.Error is null)
                throw new Fault($"it did not fail: {Tree.Show(outcome.Result)}");
            Match(wanted.AsObject(), outcome.Error);
        }
        else if (outcome.Error is { } error)
        {
            throw new Fault($"it failed: {error.Code}: {error.Message}");
        }
        if (step["seconds"] is { } seconds)
            Match(new JsonObject { ["."] = seconds.DeepClone() }, outcome.Seconds, "seconds");
        if (step["expect"] is { } expect)
            Match(expect.AsObject(), outcome.Result);
        if (step["save"] is { } name)
            Saved[(string)name!] = outcome.Result;
    }

    private void Match(JsonObject wanted, object? value, string? what = null)
    {
        foreach (var (path, matcher) in wanted)
        {
            var found = path == "." ? value : Tree.At(value, path.Split('.'));
            if (!Matcher.Fits(Values.Of(matcher), found))
                throw new Fault($"{what ?? path} is {Tree.Show(found)}, wanted {matcher?.ToJsonString() ?? "null"}");
        }
    }
}

/// <summary>What came of a call.</summary>
internal sealed record Outcome(object? Result, MaitentoException? Error, double Seconds)
{
    public static async Task<Outcome> OfAsync(Func<Task<object?>> call)
    {
        var since = Stopwatch.GetTimestamp();
        try
        {
            var result = await call();
            return new Outcome(result, null, Stopwatch.GetElapsedTime(since).TotalSeconds);
        }
        catch (MaitentoException error)
        {
            return new Outcome(null, error, Stopwatch.GetElapsedTime(since).TotalSeconds);
        }
    }
}

/// <summary>Values of a file, with what was saved put in.</summary>
internal sealed partial class Values(Dictionary<string, object?> saved)
{
    public object? Of(JsonNode? node) => node switch
    {
        null => null,
        JsonObject repeat when repeat.ContainsKey("$repeat") => string.Concat(Enumerable.Repeat((string)repeat["$repeat"]!, (int)repeat["times"]!)),
        JsonObject map => map.ToDictionary(pair => (string)Of(JsonValue.Create(pair.Key))!, pair => Of(pair.Value)),
        JsonArray list => list.Select(Of).ToList(),
        _ => node.GetValueKind() switch
        {
            JsonValueKind.String => Text((string)node!),
            JsonValueKind.True => true,
            JsonValueKind.False => false,
            _ => node.ToJsonString().Contains('.', StringComparison.Ordinal) ? (double)node : (object)(long)node,
        },
    };

    private object? Text(string text)
    {
        var whole = Place().Match(text);
        if (whole.Success && whole.Length == text.Length)
            return Named(whole.Groups[1].Value);
        return Place().Replace(text, match => Tree.Plain(Named(match.Groups[1].Value))?.ToString() ?? "");
    }

    private object? Named(string path)
    {
        var parts = path.Split('.');
        lock (saved)
            return saved.TryGetValue(parts[0], out var value) ? Tree.At(value, parts[1..]) : throw new Fault($"nothing is saved as '{parts[0]}'");
    }

    [GeneratedRegex(@"\$\{([^}]+)\}")]
    private static partial Regex Place();
}

/// <summary>Results of the SDK by the API's names, as C# spells them.</summary>
internal static class Tree
{
    public static object? At(object? value, IEnumerable<string> path)
    {
        foreach (var name in path)
            value = Member(value, name);
        return value;
    }

    private static object? Member(object? value, string name) => value switch
    {
        null => null,
        JsonElement { ValueKind: JsonValueKind.Object } json => json.TryGetProperty(name, out var member) ? member : null,
        JsonElement { ValueKind: JsonValueKind.Array } json => int.Parse(name, CultureInfo.InvariantCulture) is var at && at < json.GetArrayLength() ? json[at] : null,
        IDictionary map => map.Contains(name) ? map[name] : null,
        IList list => int.Parse(name, CultureInfo.InvariantCulture) is var at && at < list.Count ? list[at] : null,
        MaitentoException when name == "kind" => value is CapsuleCommandAbortedException ? "CapsuleCommandAbortedError" : "MaitentoError",
        MaitentoEvent when name == "event" => value.GetType().Name.Replace("Event", "", StringComparison.Ordinal).ToLowerInvariant(),
        _ => Property(value, name),
    };

    private static object? Property(object value, string name)
    {
        var pascal = char.ToUpperInvariant(name[0]) + name[1..];
        var property = value.GetType().GetProperty(pascal);
        if (property is null && value is Record)
            return null; // of no such record: as absent as it can be
        var found = property is null ? throw new Fault($"{value.GetType().Name} has no {pascal}") : property.GetValue(value);
        return value is MaitentoException && found is TimeSpan seconds ? seconds.TotalSeconds : found;
    }

    /// <summary>As JSON would have it: null, bool, number, text, list, map.</summary>
    public static object? Plain(object? value) => value switch
    {
        null or string or bool or double or long => value,
        int number => (long)number,
        DateTimeOffset date => date.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.ffffff'Z'", CultureInfo.InvariantCulture),
        TimeSpan span => span.ToString(span.Days == 0 ? @"hh\:mm\:ss" : @"d\.hh\:mm\:ss", CultureInfo.InvariantCulture),
        JsonElement json => new Values([]).Of(JsonNode.Parse(json.GetRawText())),
        IDictionary map => map.Keys.Cast<string>().ToDictionary(key => key, key => Plain(map[key])),
        IEnumerable list => list.Cast<object?>().Select(Plain).ToList(),
        RunStatus or CommandStatus or EndReason => value.ToString(),
        _ => value,
    };

    public static string Show(object? value)
    {
        var text = Plain(value) switch
        {
            null => "null",
            string plain => JsonValue.Create(plain).ToJsonString(),
            List<object?> list => $"[{string.Join(", ", list.Take(5).Select(Show))}] ({list.Count} items)",
            Dictionary<string, object?> map => $"{{{string.Join(", ", map.Select(pair => $"{pair.Key}: {Show(pair.Value)}"))}}}",
            { } other => Convert.ToString(other, CultureInfo.InvariantCulture)!,
        };
        return text.Length > 300 ? text[..300] + "…" : text;
    }
}

/// <summary>Whether values are as wanted.</summary>
internal static class Matcher
{
    public static bool Fits(object? wanted, object? found)
    {
        if (wanted is not Dictionary<string, object?> matchers || matchers.Count == 0 || !matchers.Keys.All(key => key.StartsWith('$')))
            return Equal(wanted, Tree.Plain(found));
        return matchers.All(matcher => Fits(matcher.Key, matcher.Value, found));
    }

    private static bool Fits(string kind, object? wanted, object? found) => kind switch
    {
        "$matches" => Tree.Plain(found) is string text && Regex.IsMatch(text, (string)wanted!),
        "$contains" => Tree.Plain(found) switch
        {
            string text => text.Contains((string)wanted!, StringComparison.Ordinal),
            List<object?> list => list.Any(item => Equal(wanted, item)),
            _ => false,
        },
        "$starts" => Tree.Plain(found) is string text && text.StartsWith((string)wanted!, StringComparison.Ordinal),
        "$ends" => Tree.Plain(found) is string text && text.EndsWith((string)wanted!, StringComparison.Ordinal),
        "$length" => Tree.Plain(found) switch
        {
            string text => text.EnumerateRunes().Count() == (long)wanted!,
            List<object?> list => list.Count == (long)wanted!,
            _ => false,
        },
        "$atLeast" => Number(found) >= Number(wanted),
        "$atMost" => Number(found) <= Number(wanted),
        "$has" => found is IEnumerable list && list.Cast<object?>().Any(item => ((Dictionary<string, object?>)wanted!)
            .All(pair => Fits(pair.Value, pair.Key == "." ? item : Tree.At(item, pair.Key.Split('.'))))),
        "$not" => !Fits(wanted, found),
        _ => throw new Fault($"no matcher {kind}"),
    };

    private static double? Number(object? value) => Tree.Plain(value) switch
    {
        long whole => whole,
        double number => number,
        _ => null,
    };

    private static bool Equal(object? wanted, object? found) => (Tree.Plain(wanted), found) switch
    {
        (null, null) => true,
        (List<object?> one, List<object?> two) => one.Count == two.Count && one.Zip(two).All(pair => Equal(pair.First, pair.Second)),
        (Dictionary<string, object?> one, Dictionary<string, object?> two) =>
            one.Count == two.Count && one.All(pair => two.TryGetValue(pair.Key, out var value) && Equal(pair.Value, value)),
        (long or double, long or double) => Number(wanted) == Number(found),
        var (one, two) => one is not null && one.Equals(two),
    };
}

/// <summary>One call of the SDK.</summary>
internal sealed class Call(MaitentoClient mt, Dictionary<string, object?> with, StringBuilder[]? output)
{
    public async Task<object?> DoAsync(string name)
    {
        switch (name)
        {
            case "server.info": return await mt.Server.InfoAsync();
            case "server.health": return await mt.Server.HealthAsync();
            case "server.description": return await mt.Server.DescriptionAsync();
            case "server.doctor": return await mt.Server.DoctorAsync();
            case "whoami": return await mt.WhoamiAsync();
            case "images.list": return await mt.Images.ListAsync();
            case "images.prune": return await mt.Images.PruneAsync();
            case "namespaces.list": return await mt.Namespaces.ListAsync();
            case "namespaces.find": return await mt.Namespaces.GetByNameAsync(Text("name"));
            case "namespaces.get": return await mt.Namespaces.GetAsync(Text("name"));
            case "namespaces.create": return await mt.Namespaces.CreateAsync(Text("name"));
            case "namespaces.delete": await mt.Namespaces.DeleteAsync(Text("name")); return null;
            case "namespaces.setDefault": return await mt.Namespaces.SetDefaultAsync(Text("name"));
            case "namespaces.listMembers": return await mt.Namespaces.ListMembersAsync(Text("name"));
            case "namespaces.addMember": await mt.Namespaces.AddMemberAsync(Text("name"), Text("user")); return null;
            case "namespaces.removeMember": await mt.Namespaces.RemoveMemberAsync(Text("name"), Text("user")); return null;
            case "keys.list": return await mt.Keys.ListAsync(TextOrNull("user"));
            case "keys.create": return await mt.Keys.CreateAsync(Text("name"), Date("expires"), TextOrNull("user"));
            case "keys.delete": await mt.Keys.DeleteAsync(Text("id")); return null;
            case "users.list": return await mt.Users.ListAsync();
            case "users.create": return await mt.Users.CreateAsync(Text("name"), TextOrNull("role"), Date("expires"));
            case "users.delete": await mt.Users.DeleteAsync(Text("name")); return null;
            case "vfs.list": return await mt.VirtualFileSystems.ListAsync(Namespace);
            case "vfs.findByName": return await mt.VirtualFileSystems.GetByNameAsync(Namespace, Text("name"));
            case "vfs.get": return await mt.VirtualFileSystems.GetAsync(Namespace, Text("name"));
            case "vfs.create": return await mt.VirtualFileSystems.CreateAsync(Namespace, Text("name"));
            case "vfs.setLimit": return await mt.VirtualFileSystems.SetLimitAsync(Namespace, Text("name"), Text("limit"));
            case "vfs.delete": await mt.VirtualFileSystems.DeleteAsync(Namespace, Text("name"), Flag("force")); return null;
            case "secrets.list": return await mt.Secrets.ListAsync(Namespace);
            case "secrets.find": return await mt.Secrets.GetByNameAsync(Namespace, Text("name"));
            case "secrets.get": return await mt.Secrets.GetAsync(Namespace, Text("name"));
            case "secrets.create":
                return TextOrNull("valueBase64") is { } made ? await mt.Secrets.CreateAsync(Namespace, Text("name"), Convert.FromBase64String(made))
                    : await mt.Secrets.CreateAsync(Namespace, Text("name"), Text("value"));
            case "secrets.set":
                return TextOrNull("valueBase64") is { } set ? await mt.Secrets.SetAsync(Namespace, Text("name"), Convert.FromBase64String(set))
                    : await mt.Secrets.SetAsync(Namespace, Text("name"), Text("value"));
            case "secrets.delete": await mt.Secrets.DeleteAsync(Namespace, Text("name"), Flag("force")); return null;
            case "providers.list": return await mt.Providers.ListAsync();
            case "providers.get": return await mt.Providers.GetAsync(Text("name"));
            case "providers.set": return await mt.Providers.SetAsync(Text("name"), Settings());
            case "providers.delete": await mt.Providers.DeleteAsync(Text("name")); return null;
            case "providers.test": return await mt.Providers.TestAsync(Text("name"), Text("model"));
            case "deploy": return await DeployAsync();
            case "capsules.list": return await mt.Capsules.ListAsync(Namespace);
            case "capsules.get": return await mt.Capsules.GetAsync(Namespace, Text("name"), Number("version"));
            case "capsules.start": return await mt.CapsuleProcesses.StartAsync(Namespace, Text("name"), Start());
            case "capsules.run": return await mt.Capsules.RunAsync(Namespace, Text("name"), Start());
            case "capsules.plan": return await mt.Capsules.PlanAsync(Namespace, Text("name"), Start());
            case "agents.list": return await mt.Agents.ListAsync(Namespace);
            case "agents.get": return await mt.Agents.GetAsync(Namespace, Text("name"), Number("version"));
            case "apps.list": return await mt.Apps.ListAsync(Namespace);
            case "apps.get": return await mt.Apps.GetAsync(Namespace, Text("name"), Number("version"));
            case "interactions.list": return await mt.Interactions.ListAsync(Namespace);
            case "interactions.get": return await mt.Interactions.GetAsync(Namespace, Text("name"), Number("version"));
            case "jsonSchemas.list": return await mt.JsonSchemas.ListAsync(Namespace);
            case "jsonSchemas.get": return await mt.JsonSchemas.GetAsync(Namespace, Text("name"), Number("version"));
            case "prompts.list": return await mt.Prompts.ListAsync(Namespace);
            case "prompts.get": return await mt.Prompts.GetAsync(Namespace, Text("name"), Number("version"));
            case "apps.start": return await mt.Apps.StartAsync(Namespace, Text("name"), AppStart());
            case "apps.run": return await mt.Apps.RunAsync(Namespace, Text("name"), AppStart());
            case "interactions.start": return await mt.Interactions.StartAsync(Namespace, Text("name"), InteractionStart());
            case "interactions.run": return await mt.Interactions.RunAsync(Namespace, Text("name"), InteractionStart());
        }
        return name.Split('.')[0] switch
        {
            "files" => await FilesAsync(name),
            "capsuleRuns" => await CapsuleRunAsync(name),
            "appRuns" => await AppRunAsync(name),
            "interactionRuns" => await InteractionRunAsync(name),
            "shells" => await ShellAsync(name),
            "events" => await EventsAsync(name),
            _ => throw new Fault($"the SDK has no {name}"),
        };
    }

    private async Task<object?> CapsuleRunAsync(string name)
    {
        switch (name)
        {
            case "capsuleRuns.list":
                return await mt.CapsuleProcesses.ListAsync(new CapsuleRunFilter
                {
                    Namespace = Namespace,
                    Capsule = TextOrNull("capsule"),
                    Status = TextOrNull("status") is { } status ? new RunStatus(status) : (RunStatus?)null,
                    IdEnding = TextOrNull("idEnding"),
                    Mine = Flag("mine"),
                    Limit = Number("limit") ?? 100,
                });
            case "capsuleRuns.get": return await mt.CapsuleProcesses.GetAsync(Run);
            case "capsuleRuns.story": return await mt.CapsuleProcesses.GetStoryAsync(Run, Number("after") ?? 0);
            case "capsuleRuns.wait": return await mt.CapsuleProcesses.WaitAsync(Run, Seconds("timeout"));
            case "capsuleRuns.waitUntilReady": return await mt.CapsuleProcesses.WaitUntilReadyAsync(Run, Seconds("timeout"));
            case "capsuleRuns.terminate": return await mt.CapsuleProcesses.TerminateAsync(Run);
            case "capsuleRuns.extend": return await mt.CapsuleProcesses.ExtendAsync(Run, Duration(with, "maxDuration")!.Value);
            case "capsuleRuns.exec": return await mt.CapsuleProcesses.RunCommandAsync(Run, Command());
            case "capsuleRuns.execAndWait": return await mt.CapsuleProcesses.RunCommandAndWaitAsync(Run, Command());
            case "capsuleRuns.listCommands":
                return await mt.CapsuleProcesses.ListCommandsAsync(
                    Run, TextOrNull("status") is { } of ? new CommandStatus(of) : (CommandStatus?)null, TextOrNull("idEnding"), Number("limit"));
            case "capsuleRuns.getCommand": return await mt.CapsuleProcesses.GetCommandAsync(Run, Text("command"));
            case "capsuleRuns.findCommand": return await mt.CapsuleProcesses.FindCommandAsync(Text("command"));
            case "capsuleRuns.waitCommand": return await mt.CapsuleProcesses.WaitForCommandAsync(Run, Text("command"), Seconds("timeout"));
            case "capsuleRuns.cancelCommand": return await mt.CapsuleProcesses.CancelCommandAsync(Run, Text("command"));
            case "capsuleRuns.output":
                var bytes = new MemoryStream();
                var text = new StringBuilder();
                var stream = TextOrNull("stream") == "error" ? CommandStream.Error : CommandStream.Standard;
                await foreach (var piece in mt.CapsuleProcesses.OutputAsync(Run, Text("command"), stream, Number("from") ?? 0, Flag("follow")))
                {
                    bytes.Write(piece.Bytes.Span);
                    text.Append(piece.Text);
                }
                return new Dictionary<string, object?> { ["text"] = text.ToString(), ["base64"] = Convert.ToBase64String(bytes.ToArray()) };
            default: throw new Fault($"the SDK has no {name}");
        }
    }

    private async Task<object?> AppRunAsync(string name)
    {
        switch (name)
        {
            case "appRuns.list":
                return await mt.AppRuns.ListAsync(new AppRunFilter
                {
                    Namespace = Namespace,
                    App = TextOrNull("app"),
                    Status = TextOrNull("status") is { } status ? new RunStatus(status) : (RunStatus?)null,
                    IdEnding = TextOrNull("idEnding"),
                    Mine = Flag("mine"),
                    Parent = TextOrNull("parent"),
                    Limit = Number("limit") ?? 100,
                });
            case "appRuns.get": return await mt.AppRuns.GetAsync(Run, Flag("console"));
            case "appRuns.wait": return await mt.AppRuns.WaitAsync(Run, Seconds("timeout"));
            case "appRuns.console": return await ListAsync(mt.AppRuns.ConsoleAsync(Run, Number("after") ?? 0, Flag("follow")));
            case "appRuns.log": return await ListAsync(mt.AppRuns.LogAsync(Run, Number("after") ?? 0, Flag("follow")));
            case "appRuns.cancel": return await mt.AppRuns.CancelAsync(Run);
            case "appRuns.rerun": return await mt.AppRuns.RerunAsync(Run, TextOrNull("idempotencyKey"));
            default: throw new Fault($"the SDK has no {name}");
        }
    }

    private async Task<object?> InteractionRunAsync(string name)
    {
        switch (name)
        {
            case "interactionRuns.list":
                return await mt.InteractionRuns.ListAsync(new InteractionRunFilter
                {
                    Namespace = Namespace,
                    Interaction = TextOrNull("interaction"),
                    Status = TextOrNull("status") is { } status ? new RunStatus(status) : (RunStatus?)null,
                    IdEnding = TextOrNull("idEnding"),
                    Mine = Flag("mine"),
                    Parent = TextOrNull("parent"),
                    Limit = Number("limit") ?? 100,
                });
            case "interactionRuns.get": return await mt.InteractionRuns.GetAsync(Run);
            case "interactionRuns.wait": return await mt.InteractionRuns.WaitAsync(Run, Seconds("timeout"));
            case "interactionRuns.attempts": return await mt.InteractionRuns.AttemptsAsync(Run);
            case "interactionRuns.text":
                return await mt.InteractionRuns.TextAsync(Run, Number("stream") ?? 0, Number("from") ?? 0, Seconds("wait") ?? default);
            case "interactionRuns.cancel": return await mt.InteractionRuns.CancelAsync(Run);
            default: throw new Fault($"the SDK has no {name}");
        }
    }

    private async Task<object?> FilesAsync(string name)
    {
        var files = TextOrNull("vfs") is { } vfs ? mt.VirtualFileSystems.Open(Namespace, vfs)
            : TextOrNull("vfsId") is { } id ? mt.VirtualFileSystems.OpenById(id) : mt.CapsuleProcesses.Files(Run, TextOrNull("user"));
        switch (name)
        {
            case "files.read": return Convert.ToBase64String(await files.ReadAsync(Text("path")));
            case "files.readText": return await files.ReadTextAsync(Text("path"));
            case "files.write": return await files.WriteAsync(Text("path"), Convert.FromBase64String(Text("base64")));
            case "files.writeText": return await files.WriteTextAsync(Text("path"), Text("text"));
            case "files.stat": return await files.StatAsync(Text("path"));
            case "files.list": return await files.ListAsync(TextOrNull("path") is { } folder ? new FilePath(folder) : (FilePath?)null, Flag("recursive"));
            case "files.mkdir": return await files.MakeFolderAsync(Text("path"), !with.ContainsKey("parents") || Flag("parents"));
            case "files.move": return await files.MoveAsync(Text("from"), Text("to"), Flag("replace"));
            case "files.link": return await files.LinkAsync(Text("path"), Text("target"));
            case "files.delete": await files.DeleteAsync(Text("path"), Flag("recursive")); return null;
        }
        var local = Path.GetTempFileName();
        var progress = new Steps();
        try
        {
            if (name == "files.upload")
            {
                await File.WriteAllTextAsync(local, Text("text"));
                await files.UploadAsync(Text("path"), local, progress);
                return new Dictionary<string, object?> { ["progress"] = progress.Told };
            }
            await files.DownloadAsync(Text("path"), local, progress);
            return new Dictionary<string, object?> { ["text"] = await File.ReadAllTextAsync(local), ["progress"] = progress.Told };
        }
        finally
        {
            File.Delete(local);
        }
    }

    private async Task<object?> ShellAsync(string name)
    {
        switch (name)
        {
            case "shells.start":
                return await mt.Shells.StartAsync(Run, TextOrNull("user"), TextOrNull("term"), Number("columns"), Number("rows"));
            case "shells.list": return await mt.Shells.ListAsync(Run);
            case "shells.get": return await mt.Shells.GetAsync(Run, Text("shell"));
            case "shells.close": await mt.Shells.CloseAsync(Run, Text("shell")); return null;
            case "shells.type": await mt.Shells.TypeAsync(Run, Text("shell"), Text("text")); return null;
            case "shells.resize":
                await mt.Shells.ResizeAsync(Run, Text("shell"), Number("columns")!.Value, Number("rows")!.Value);
                return null;
            case "shells.output":
                var shown = new MemoryStream();
                await foreach (var bytes in mt.Shells.OutputAsync(Run, Text("shell")))
                    shown.Write(bytes.Span);
                return new Dictionary<string, object?> { ["text"] = Encoding.UTF8.GetString(shown.ToArray()) };
            default: throw new Fault($"the SDK has no {name}");
        }
    }

    private async Task<object?> EventsAsync(string name)
    {
        switch (name)
        {
            case "events.open":
                return await mt.Events.OpenAsync(new EventsOptions
                {
                    After = Number("after"),
                    Last = Number("last"),
                    Namespace = Namespace,
                    Run = TextOrNull("run"),
                    Output = Flag("output"),
                    Kinds = with.GetValueOrDefault("kind") switch
                    {
                        string kind => [kind],
                        List<object?> kinds => kinds.Cast<string>().ToList(),
                        _ => null,
                    },
                });
            case "events.next":
                var match = (Dictionary<string, object?>)with["match"]!;
                using (var end = new CancellationTokenSource(TimeSpan.FromSeconds(20)))
                {
                    await foreach (var next in ((MaitentoEvents)with["events"]!).WithCancellation(end.Token))
                    {
                        if (match.All(pair => Matcher.Fits(pair.Value, Tree.At(next, [pair.Key]))))
                            return next;
                    }
                }
                throw new Fault("the stream ended");
            case "events.close": await ((MaitentoEvents)with["events"]!).DisposeAsync(); return null;
            default: throw new Fault($"the SDK has no {name}");
        }
    }

    // ---- arguments ----

    private string? Namespace => TextOrNull("namespace");

    /// <summary>An id, or a run that was saved.</summary>
    private string Run => with.GetValueOrDefault("run") is string id ? id : (string)Tree.At(with["run"], ["id"])!;

    private string Text(string name) => TextOrNull(name) ?? throw new Fault($"'{name}' is not given");

    private string? TextOrNull(string name) => with.GetValueOrDefault(name) is var value && value is null or string ? (string?)value : Tree.Plain(value)!.ToString();

    private bool Flag(string name) => with.GetValueOrDefault(name) is true;

    private int? Number(string name) => with.GetValueOrDefault(name) is long value ? (int)value : null;

    private DateTimeOffset? Date(string name) => TextOrNull(name) is { } text ? DateTimeOffset.Parse(text, CultureInfo.InvariantCulture) : null;

    private TimeSpan? Seconds(string name) => with.GetValueOrDefault(name) switch
    {
        long seconds => TimeSpan.FromSeconds(seconds),
        double seconds => TimeSpan.FromSeconds(seconds),
        _ => null,
    };

    /// <summary>Durations are TimeSpan in C#: what is none of those cannot be given, and stands for the refusal that it gets elsewhere.</summary>
    private static TimeSpan? Duration(Dictionary<string, object?> from, string name)
    {
        if (from.GetValueOrDefault(name) is not string text)
            return null;
        var form = Regex.Match(text, @"^(?:(\d{1,7})\.)?(\d\d):([0-5]\d):([0-5]\d)$");
        if (!form.Success)
            throw new NoDuration(name, text);
        int Part(int at) => form.Groups[at].Success ? int.Parse(form.Groups[at].ValueSpan, CultureInfo.InvariantCulture) : 0;
        return new TimeSpan(Part(1), Part(2), Part(3), Part(4));
    }

    private Dictionary<string, string>? Map(string name) =>
        with.GetValueOrDefault(name) is Dictionary<string, object?> map ? map.ToDictionary(pair => pair.Key, pair => (string)pair.Value!) : null;

    private static List<string>? List(Dictionary<string, object?> from, string name) =>
        from.GetValueOrDefault(name) is List<object?> list ? list.Cast<string>().ToList() : null;

    private List<T>? Each<T>(string name, Func<Dictionary<string, object?>, T> make) =>
        with.GetValueOrDefault(name) is List<object?> list ? list.Select(item => make((Dictionary<string, object?>)item!)).ToList() : null;

    private CapsuleProcessStartRequest Start() => new()
    {
        Version = Number("version"),
        Environment = Map("environment"),
        MaxDuration = Duration(with, "maxDuration"),
        Labels = Map("labels"),
        IdempotencyKey = TextOrNull("idempotencyKey"),
        Vfs = Each("vfs", item => new VfsMount { Vfs = (string)item["vfs"]!, MountName = (string)item["mountName"]! }),
        Secrets = Each("secrets", item => new SecretMount { Secret = (string)item["secret"]!, MountName = (string)item["mountName"]! }),
        Startup = Each("startup", item => new StartupCommand
        {
            Command = (string)item["command"]!,
            Arguments = List(item, "arguments"),
            RunAsUser = item.GetValueOrDefault("runAsUser") as string,
            MaxDuration = Duration(item, "maxDuration"),
            Wait = item.GetValueOrDefault("wait") as bool?,
        }),
    };

    private CapsuleProcessRunCommandRequest Command() => new()
    {
        Command = Text("command"),
        Arguments = List(with, "arguments"),
        RunAsUser = TextOrNull("runAsUser"),
        MaxDuration = Duration(with, "maxDuration"),
        Async = Flag("async"),
        WorkingDirectory = TextOrNull("workingDirectory"),
        Environment = Map("environment"),
        Stdin = TextOrNull("stdin"),
        IdempotencyKey = TextOrNull("idempotencyKey"),
        OnOutput = output is null ? null : piece => output[piece.Stream == CommandStream.Error ? 1 : 0].Append(piece.Text),
    };

    private AppStartRequest AppStart() => new()
    {
        Version = Number("version"),
        Inputs = (JsonObject?)Json(with.GetValueOrDefault("inputs")),
        IdempotencyKey = TextOrNull("idempotencyKey"),
    };

    private InteractionStartRequest InteractionStart() => new()
    {
        Version = Number("version"),
        Inputs = (JsonObject?)Json(with.GetValueOrDefault("inputs")),
        IdempotencyKey = TextOrNull("idempotencyKey"),
    };

    private static JsonNode? Json(object? value) => value switch
    {
        null => null,
        string text => text,
        bool flag => flag,
        long number => number,
        double number => number,
        List<object?> list => new JsonArray([.. list.Select(Json)]),
        Dictionary<string, object?> map => new JsonObject(map.Select(pair => KeyValuePair.Create(pair.Key, Json(pair.Value)))),
        _ => throw new Fault($"{value} is no JSON"),
    };

    private ProviderSettings Settings() => new()
    {
        Key = TextOrNull("key"),
        BaseUrl = TextOrNull("baseUrl"),
        SchemaMode = TextOrNull("schemaMode"),
        Concurrency = Number("concurrency"),
        PricePerMillionTokensIn = TextOrNull("pricePerMillionTokensIn"),
        PricePerMillionTokensOut = TextOrNull("pricePerMillionTokensOut"),
        Forget = [.. with.Where(pair => pair.Value is null).Select(pair => pair.Key)],
    };

    private async Task<object?> DeployAsync()
    {
        var folder = Directory.CreateTempSubdirectory("project-").FullName;
        try
        {
            foreach (var (path, content) in (Dictionary<string, object?>)with["files"]!)
            {
                var at = Path.Combine(folder, path);
                Directory.CreateDirectory(Path.GetDirectoryName(at)!);
                switch (content)
                {
                    case Dictionary<string, object?> link when link.ContainsKey("link"):
                        File.CreateSymbolicLink(at, (string)link["link"]!);
                        break;
                    case Dictionary<string, object?> bytes:
                        await File.WriteAllBytesAsync(at, Convert.FromBase64String((string)bytes["base64"]!));
                        break;
                    case List<object?> lines:
                        await File.WriteAllTextAsync(at, string.Concat(lines.Select(line => $"{line}\n")));
                        break;
                    default:
                        await File.WriteAllTextAsync(at, (string)content!);
                        break;
                }
            }
            return await mt.DeployAsync(folder, Namespace, Flag("dryRun"), Flag("prune"));
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private static async Task<List<T>> ListAsync<T>(IAsyncEnumerable<T> items)
    {
        var list = new List<T>();
        await foreach (var item in items)
            list.Add(item);
        return list;
    }

    private sealed class Steps : IProgress<long>
    {
        public List<long> Told { get; } = [];

        public void Report(long value) => Told.Add(value);
    }
}

/// <summary>A text that no TimeSpan is: the refusal that it gets where durations are texts.</summary>
internal sealed class NoDuration(string member, string text) : MaitentoException($"'{text}' is no duration", "badField", 400)
{
    public new string Field { get; } = member;
}
