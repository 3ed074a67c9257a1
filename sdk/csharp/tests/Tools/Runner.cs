// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Globalization;
using System.Reflection;

namespace Maitento.Sdk.Tests.Tools;

/// <summary>Marks a test: a public method without parameters, of a class with a constructor without any.</summary>
[AttributeUsage(AttributeTargets.Method)]
internal sealed class TestAttribute : Attribute;

/// <summary>Something was not as it must be.</summary>
internal sealed class CheckException : Exception
{
    public CheckException()
    {
    }

    public CheckException(string message) : base(message)
    {
    }

    public CheckException(string message, Exception innerException) : base(message, innerException)
    {
    }
}

/// <summary>Runs tests, several at a time, each with a deadline.</summary>
internal static class Runner
{
    private const int AtOnce = 8;
    private static readonly TimeSpan Deadline = TimeSpan.FromSeconds(80);

    public static async Task<bool> RunAsync(string suite, string[] parts)
    {
        var space = $"{typeof(Program).Namespace ?? "Maitento.Sdk.Tests"}.{CultureInfo.InvariantCulture.TextInfo.ToTitleCase(suite)}";
        var tests = typeof(Runner).Assembly.GetTypes().Where(type => type.Namespace == space)
            .SelectMany(type => type.GetMethods()).Where(method => method.GetCustomAttribute<TestAttribute>() is not null)
            .Select(method => (Name: $"{method.DeclaringType!.Name}: {method.Name.Replace('_', ' ')}", Method: method))
            .Where(test => parts.Length == 0 || parts.Any(part => test.Name.Contains(part, StringComparison.OrdinalIgnoreCase)))
            .OrderBy(test => test.Name, StringComparer.Ordinal).ToList();
        var count = 0;
        var failed = 0;
        var printing = new object();
        await Parallel.ForEachAsync(tests, new ParallelOptions { MaxDegreeOfParallelism = AtOnce }, async (test, _) =>
        {
            var since = Stopwatch.GetTimestamp();
            var fault = await FaultOfAsync(test.Method);
            lock (printing)
            {
                count++;
                failed += fault is null ? 0 : 1;
                var seconds = Stopwatch.GetElapsedTime(since).TotalSeconds;
                Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{(fault is null ? "ok" : "not ok")} {count} - {test.Name} ({seconds:0.0} s)"));
                foreach (var line in (fault ?? "").Split('\n', StringSplitOptions.RemoveEmptyEntries))
                    Console.WriteLine($"# {line}");
            }
        });
        Console.WriteLine($"1..{count}");
        return failed == 0 && count > 0;
    }

    private static async Task<string?> FaultOfAsync(MethodInfo method)
    {
        try
        {
            var instance = Activator.CreateInstance(method.DeclaringType!);
            await ((Task)method.Invoke(instance, null)!).WaitAsync(Deadline);
            return null;
        }
        catch (Exception error)
        {
            return (error is TargetInvocationException { InnerException: { } inner } ? inner : error).ToString();
        }
    }
}
