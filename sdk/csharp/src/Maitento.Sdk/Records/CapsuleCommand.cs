// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;

namespace Maitento.Sdk;

/// <summary>A command in a run of a capsule, in a list.</summary>
[Schema("CommandItem")]
public class CapsuleCommandItem : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>The run that it is in.</summary>
    public string RunId { get; set; } = "";

    /// <summary>Shell text.</summary>
    public string Command { get; set; } = "";

    /// <summary>Words that follow it, each byte for byte.</summary>
    public IReadOnlyList<string> Arguments { get; set; } = [];

    /// <summary>Who runs it.</summary>
    public string RunAsUser { get; set; } = "";

    /// <summary>Whether the next one does not wait for it.</summary>
    public bool Async { get; set; }

    /// <summary>Its longest life, from its own start; null where it has none of its own.</summary>
    public TimeSpan? MaxDuration { get; set; }

    /// <summary>Null is the home of the user.</summary>
    public string? WorkingDirectory { get; set; }

    /// <summary>Variables of its own.</summary>
    public IReadOnlyDictionary<string, string> Environment { get; set; } = new Dictionary<string, string>();

    /// <summary>What it is at.</summary>
    public CommandStatus Status { get; set; }

    /// <summary>Why it ended; null until then.</summary>
    public EndReason? EndReason { get; set; }

    /// <summary>Of a signal 128 and its number. Null until it has ended, and when it never started or did not end by itself.</summary>
    public int? ExitCode { get; set; }

    /// <summary>With <c>timeout</c>: the limit that was passed, in milliseconds.</summary>
    [Optional]
    public long? LimitMs { get; set; }

    /// <summary>With <c>signaled</c>: the signal.</summary>
    [Optional]
    public int? Signal { get; set; }

    /// <summary>Why it was aborted or could not run; empty where the exit code says all.</summary>
    public string FailureDetails { get; set; } = "";

    /// <summary><c>memory</c>, <c>pids</c>, <c>disk</c>: limits that it ran into.</summary>
    public IReadOnlyList<string> LimitsReached { get; set; } = [];

    /// <summary>When it was sent.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When it began.</summary>
    public DateTimeOffset? DateStarted { get; set; }

    /// <summary>When it ended.</summary>
    public DateTimeOffset? DateEnded { get; set; }

    /// <summary>Whether it has ended.</summary>
    [JsonIgnore]
    public bool HasEnded => Status == CommandStatus.Finished || Status == CommandStatus.Error || Status == CommandStatus.Aborted;
}

/// <summary>A command in a run of a capsule, with what it printed.</summary>
[Schema("Command")]
public sealed class CapsuleCommand : CapsuleCommandItem
{
    /// <summary>When it has ended: the last 65,536 characters that it printed; bytes that are no UTF-8 are U+FFFD.</summary>
    public string OutputStandard { get; set; } = "";

    /// <summary>The same of its error output.</summary>
    public string OutputError { get; set; } = "";

    /// <summary>How many characters it printed in all, where that is more.</summary>
    [Optional]
    public long? OutputStandardFullLength { get; set; }

    /// <summary>The same of its error output.</summary>
    [Optional]
    public long? OutputErrorFullLength { get; set; }
}
