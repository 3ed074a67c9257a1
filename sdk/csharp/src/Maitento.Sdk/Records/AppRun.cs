// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Maitento.Sdk;

/// <summary>A run of an app, in a list.</summary>
[Schema("AppRunItem")]
public class AppRunItem : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Where its app lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>Its app.</summary>
    public string App { get; set; } = "";

    /// <summary>Of the app.</summary>
    public int Version { get; set; }

    /// <summary>What it is at.</summary>
    public RunStatus Status { get; set; }

    /// <summary>Why it ended; null while it lives.</summary>
    public EndReason? EndReason { get; set; }

    /// <summary>With <c>timeout</c>: the limit that was passed, in milliseconds.</summary>
    [Optional]
    public long? LimitMs { get; set; }

    /// <summary>With <c>cancelled</c>: by whom.</summary>
    [Optional]
    public string? CancelledBy { get; set; }

    /// <summary>Empty while it lives and when it returned; of a <c>throw</c> that nothing caught, its text alone.</summary>
    public string FailureDetails { get; set; } = "";

    /// <summary>Of the error that nothing caught: <c>Thrown</c>, <c>Overflow</c>, <c>notFound</c>, …</summary>
    public string? FailureCode { get; set; }

    /// <summary>Where it came up, <c>analyst.mtc:12:3</c>.</summary>
    public string? FailurePlace { get; set; }

    /// <summary>The calls that were under way there, the innermost first.</summary>
    public IReadOnlyList<StackFrame> FailureStack { get; set; } = [];

    /// <summary>What keeps it, for people, where that is not of its own doing.</summary>
    public string? WaitingFor { get; set; }

    /// <summary>As that of a capsule run.</summary>
    public string StartedBy { get; set; } = "";

    /// <summary>The capsule run inside which it was started.</summary>
    public string? ParentRunId { get; set; }

    /// <summary>The run of an app that started it.</summary>
    public string? ParentAppRunId { get; set; }

    /// <summary>The run that it repeats.</summary>
    public string? RerunOf { get; set; }

    /// <summary>When it was started.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When it ended.</summary>
    public DateTimeOffset? DateEnded { get; set; }

    /// <summary>Its longest life, from the start.</summary>
    public TimeSpan MaxDuration { get; set; }

    /// <summary>When that is over.</summary>
    public DateTimeOffset? Deadline { get; set; }

    /// <summary>From its start to its end, or until now.</summary>
    public double RunSeconds { get; set; }

    /// <summary>Lines that were printed, those no longer kept included.</summary>
    public long ConsoleOutputsFullCount { get; set; }

    /// <summary>Calls to the outside that it made.</summary>
    public long CallCount { get; set; }

    /// <summary>Whether it has ended.</summary>
    [JsonIgnore]
    public bool HasEnded => Status == RunStatus.Finished || Status == RunStatus.Error;
}

/// <summary>A run of an app, with its inputs and what came of it.</summary>
[Schema("AppRun")]
public sealed class AppRun : AppRunItem
{
    /// <summary>By the names of the parameters.</summary>
    public IReadOnlyDictionary<string, JsonElement> Inputs { get; set; } = new Dictionary<string, JsonElement>();

    /// <summary>What the program set by <c>AppStateSetOutput…</c>.</summary>
    public IReadOnlyDictionary<string, JsonElement> Outputs { get; set; } = new Dictionary<string, JsonElement>();

    /// <summary>What <c>main</c> returned: a text (which prints as it is), a number, true or false, an object or a list; null of void, and until then.</summary>
    [Optional]
    public JsonElement? ReturnValue { get; set; }

    /// <summary>What it printed, as far as that is kept, where it was asked for.</summary>
    [Optional]
    public IReadOnlyList<ConsoleLine> ConsoleOutputs { get; set; } = [];
}

/// <summary>A call that was under way.</summary>
public sealed class StackFrame : Record
{
    /// <summary>Its name.</summary>
    public string Function { get; set; } = "";

    /// <summary>Where it was, <c>analyst.mtc:12:3</c>.</summary>
    public string Place { get; set; } = "";
}

/// <summary>A line that an app printed.</summary>
[Schema("ConsoleLine")]
public sealed class ConsoleLine : Record
{
    /// <summary>Lines of console and log are counted together, from 1.</summary>
    public long Number { get; set; }

    /// <summary>With its line end, where it has one.</summary>
    public string Text { get; set; } = "";

    /// <summary>When.</summary>
    public DateTimeOffset Date { get; set; }
}

/// <summary>A line that an app wrote to its log.</summary>
[Schema("LogLine")]
public sealed class LogLine : Record
{
    /// <summary>Lines of console and log are counted together, from 1.</summary>
    public long Number { get; set; }

    /// <summary><c>info</c>, <c>warning</c> or <c>error</c>.</summary>
    public string Level { get; set; } = "";

    /// <summary>The line.</summary>
    public string Text { get; set; } = "";

    /// <summary>When.</summary>
    public DateTimeOffset Date { get; set; }
}

/// <summary>Lines of an app's console or log.</summary>
internal sealed class Lines<T>
{
    /// <summary>The lines that follow.</summary>
    public IReadOnlyList<T> Items { get; set; } = [];

    /// <summary>The run has ended, and no line follows these.</summary>
    public bool Ended { get; set; }

    /// <summary>Number of the last of these lines.</summary>
    public long Next { get; set; }
}
