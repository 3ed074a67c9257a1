// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Maitento.Sdk;

/// <summary>A run of an interaction, in a list.</summary>
[Schema("InteractionRunItem")]
public class InteractionRunItem : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Where its interaction lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>Its interaction.</summary>
    public string Interaction { get; set; } = "";

    /// <summary>Of the interaction.</summary>
    public int Version { get; set; }

    /// <summary>As the agent names it, <c>deepseek.deepseek-v4-flash</c>.</summary>
    public string Model { get; set; } = "";

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

    /// <summary>Empty while it lives and when it was answered; else why, and what to do.</summary>
    public string FailureDetails { get; set; } = "";

    /// <summary>As that of a capsule run.</summary>
    public string StartedBy { get; set; } = "";

    /// <summary>The capsule run inside which it was started.</summary>
    public string? ParentRunId { get; set; }

    /// <summary>The run of an app that started it.</summary>
    public string? ParentAppRunId { get; set; }

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

    /// <summary>Attempts that were begun.</summary>
    public int AttemptCount { get; set; }

    /// <summary>Of all attempts; null where the provider told nothing.</summary>
    public long? TokensIn { get; set; }

    /// <summary>Of all attempts; null where the provider told nothing.</summary>
    public long? TokensOut { get; set; }

    /// <summary>A decimal, in the currency of the prices that are set for the provider; null where none are.</summary>
    public string? Cost { get; set; }

    /// <summary>Whether it has ended.</summary>
    [JsonIgnore]
    public bool HasEnded => Status == RunStatus.Finished || Status == RunStatus.Error;
}

/// <summary>A run of an interaction: a model that is asked.</summary>
[Schema("InteractionRun")]
public sealed class InteractionRun : InteractionRunItem
{
    /// <summary>What the model answered: JSON as a text where the interaction has a schema, which it fits; else any text. Null until then.</summary>
    [Optional]
    public string? Output { get; set; }

    /// <summary>By the names that the interaction declares.</summary>
    public IReadOnlyDictionary<string, JsonElement> Inputs { get; set; } = new Dictionary<string, JsonElement>();
}

/// <summary>What a model was asked, and what it answered.</summary>
[Schema("InteractionAttempt")]
public sealed class InteractionAttempt : Record
{
    /// <summary>From 1.</summary>
    public int Number { get; set; }

    /// <summary>What came of it; null while it is under way.</summary>
    public EndReason? Outcome { get; set; }

    /// <summary>What was wrong with the answer, as the model is told.</summary>
    public IReadOnlyList<string> Faults { get; set; } = [];

    /// <summary>What was asked, the oldest first.</summary>
    public IReadOnlyList<InteractionMessage> Messages { get; set; } = [];

    /// <summary>As it came; empty where none did.</summary>
    public string Answer { get; set; } = "";

    /// <summary>What the provider sent apart from it.</summary>
    public string Reasoning { get; set; } = "";

    /// <summary>As the provider calls it.</summary>
    public string? Model { get; set; }

    /// <summary>Of the last request.</summary>
    public int? HttpStatus { get; set; }

    /// <summary>That were sent for it, repeats included.</summary>
    public int Requests { get; set; }

    /// <summary>Null where the provider told nothing.</summary>
    public long? TokensIn { get; set; }

    /// <summary>Null where the provider told nothing.</summary>
    public long? TokensOut { get; set; }

    /// <summary>When it was begun.</summary>
    public DateTimeOffset DateStarted { get; set; }

    /// <summary>When it ended.</summary>
    public DateTimeOffset? DateEnded { get; set; }
}

/// <summary>A message to a model.</summary>
public sealed class InteractionMessage : Record
{
    /// <summary><c>system</c>, <c>user</c> or <c>assistant</c>.</summary>
    public string Role { get; set; } = "";

    /// <summary>What it says.</summary>
    public string Content { get; set; } = "";
}

/// <summary>What a model says, as it comes.</summary>
public sealed class InteractionText : Record
{
    /// <summary>The text that <see cref="From"/> is a place in: a model that is asked again begins another.</summary>
    public long Stream { get; set; }

    /// <summary>Whose answer it is.</summary>
    public int Attempt { get; set; }

    /// <summary>Bytes of the text before this.</summary>
    public long From { get; set; }

    /// <summary>What came since.</summary>
    public string Text { get; set; } = "";

    /// <summary>Bytes of the text that are known now.</summary>
    public long Next { get; set; }

    /// <summary>Whether the run has ended.</summary>
    public bool Ended { get; set; }
}
