// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
using Maitento.Sdk;

namespace Maitento.Entities.Capsules;

/// <summary>A command for a run.</summary>
[Schema("CommandRequest")]
public sealed class CapsuleProcessRunCommandRequest
{
    /// <summary>Shell text, run by the user's login shell: a whole line with pipes and redirections is fine.</summary>
    public required string Command { get; set; }

    /// <summary>Words that follow it. Each reaches the program as one word, byte for byte.</summary>
    [Optional]
    public IReadOnlyList<string>? Arguments { get; set; }

    /// <summary><c>maitento</c> (where it is null), <c>root</c> or a user of the capsule.</summary>
    [Optional]
    public string? RunAsUser { get; set; }

    /// <summary>Its longest life, from its own start, in whole seconds; null for none but that of the run.</summary>
    [Optional]
    public TimeSpan? MaxDuration { get; set; }

    /// <summary>Whether the next command begins without waiting for this one.</summary>
    [Optional]
    [JsonIgnore(Condition = JsonIgnoreCondition.WhenWritingDefault)]
    public bool Async { get; set; }

    /// <summary>An absolute path; null for the home of the user.</summary>
    [Optional]
    public string? WorkingDirectory { get; set; }

    /// <summary>Variables of its own.</summary>
    [Optional]
    public IReadOnlyDictionary<string, string>? Environment { get; set; }

    /// <summary>What it reads, up to 8 MiB; null: its input is at its end at once.</summary>
    [Optional]
    public string? Stdin { get; set; }

    /// <summary>
    /// A text of your own for this command: another call with the same one and the same content gives the command that was sent already.
    /// Null: the SDK makes one, so that its own repeats never run a command twice.
    /// </summary>
    [JsonIgnore]
    public string? IdempotencyKey { get; set; }

    /// <summary>
    /// Called with what the command prints, as it prints it, by <see cref="CapsuleProcessesClient.RunCommandAndWaitAsync"/>: both streams,
    /// one call at a time, all of it before the method returns. What it throws ends the wait; the command goes on. Of more than 64 such
    /// calls at a time the later ones are told when earlier ones are over.
    /// </summary>
    [JsonIgnore]
    public Action<CommandOutput>? OnOutput { get; set; }
}
