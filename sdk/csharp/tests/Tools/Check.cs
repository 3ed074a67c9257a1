// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Maitento.Sdk.Tests.Tools;

/// <summary>What tests say must be so.</summary>
internal static class Check
{
    public static void That(bool isSo, [CallerArgumentExpression(nameof(isSo))] string what = "")
    {
        if (!isSo)
            throw new CheckException($"not so: {what}");
    }

    public static void Equal<T>(T wanted, T found, [CallerArgumentExpression(nameof(found))] string what = "")
    {
        if (!EqualityComparer<T>.Default.Equals(wanted, found))
            throw new CheckException($"{what} is {Show(found)}, wanted {Show(wanted)}");
    }

    public static void Same<T>(IEnumerable<T> wanted, IEnumerable<T> found, [CallerArgumentExpression(nameof(found))] string what = "")
    {
        var one = wanted.ToList();
        var two = found.ToList();
        if (!one.SequenceEqual(two))
            throw new CheckException($"{what} is [{string.Join(" | ", two)}], wanted [{string.Join(" | ", one)}]");
    }

    public static void Contains(string part, string found, [CallerArgumentExpression(nameof(found))] string what = "")
    {
        if (!found.Contains(part, StringComparison.Ordinal))
            throw new CheckException($"{what} is {Show(found)}, which has no {Show(part)}");
    }

    public static async Task<T> ThrowsAsync<T>(Func<Task> action)
        where T : Exception
    {
        try
        {
            await action();
        }
        catch (T error)
        {
            return error;
        }
        throw new CheckException($"no {typeof(T).Name} came");
    }

    public static T Throws<T>(Action action)
        where T : Exception
    {
        try
        {
            action();
        }
        catch (T error)
        {
            return error;
        }
        throw new CheckException($"no {typeof(T).Name} came");
    }

    /// <summary>Waits until something is so; within 20 seconds.</summary>
    public static async Task UntilAsync(Func<Task<bool>> isSo, [CallerArgumentExpression(nameof(isSo))] string what = "")
    {
        var since = Stopwatch.GetTimestamp();
        while (!await isSo())
        {
            if (Stopwatch.GetElapsedTime(since) > TimeSpan.FromSeconds(20))
                throw new CheckException($"it did not come to that: {what}");
            await Task.Delay(20);
        }
    }

    public static Task UntilAsync(Func<bool> isSo, [CallerArgumentExpression(nameof(isSo))] string what = "") =>
        UntilAsync(() => Task.FromResult(isSo()), what);

    private static string Show<T>(T value)
    {
        var text = value?.ToString() ?? "null";
        return text.Length > 500 ? $"'{text[..500]}…' ({text.Length})" : $"'{text}'";
    }
}
