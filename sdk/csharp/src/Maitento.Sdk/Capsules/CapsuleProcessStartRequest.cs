// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
using Maitento.Sdk;

namespace Maitento.Entities.Capsules;

/// <summary>What a start adds to a capsule. Nothing of it has to be given.</summary>
[Schema("StartRequest")]
public sealed class CapsuleProcessStartRequest
{
    /// <summary>Of the capsule; null for the newest.</summary>
    [Optional]
    public int? Version { get; set; }

    /// <summary>Variables of all its commands. They win over the capsule's own.</summary>
    [Optional]
    public IReadOnlyDictionary<string, string>? Environment { get; set; }

    /// <summary>Its longest life, from the start, in whole seconds; null for the capsule's own.</summary>
    [Optional]
    public TimeSpan? MaxDuration { get; set; }

    /// <summary>Commands that follow the capsule's own start-up commands.</summary>
    [Optional]
    public IReadOnlyList<StartupCommand>? Startup { get; set; }

    /// <summary>File systems beside the capsule's own.</summary>
    [Optional]
    public IReadOnlyList<VfsMount>? Vfs { get; set; }

    /// <summary>Secrets beside the capsule's own.</summary>
    [Optional]
    public IReadOnlyList<SecretMount>? Secrets { get; set; }

    /// <summary>Up to 32 texts by name that the run carries.</summary>
    [Optional]
    public IReadOnlyDictionary<string, string>? Labels { get; set; }

    /// <summary>
    /// A text of your own for this start: another call with the same one and the same content gives the run that is there already. Null:
    /// the SDK makes one, so that its own repeats never start a second run.
    /// </summary>
    [JsonIgnore]
    public string? IdempotencyKey { get; set; }

    /// <summary>Whether to wait where the server is full; else that is an error, <c>capacityExceeded</c>.</summary>
    [JsonIgnore]
    public bool WaitForCapacity { get; set; }
}
