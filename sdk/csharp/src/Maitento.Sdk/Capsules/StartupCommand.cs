// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk;

namespace Maitento.Entities.Capsules;

/// <summary>What runs as a capsule starts.</summary>
[Schema("StartupCommand")]
public sealed class StartupCommand
{
    /// <summary>Shell text.</summary>
    public required string Command { get; set; }

    /// <summary>Words that follow it, each byte for byte.</summary>
    [Optional]
    public IReadOnlyList<string>? Arguments { get; set; }

    /// <summary>Who runs it; <c>maitento</c> where it is null.</summary>
    [Optional]
    public string? RunAsUser { get; set; }

    /// <summary>Its longest life, in whole seconds; null for none of its own.</summary>
    [Optional]
    public TimeSpan? MaxDuration { get; set; }

    /// <summary>Whether the next one waits for its end; true where it is null.</summary>
    [Optional]
    public bool? Wait { get; set; }
}
