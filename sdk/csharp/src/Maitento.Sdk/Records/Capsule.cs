// SPDX-License-Identifier: Apache-2.0
using Maitento.Entities.Capsules;

namespace Maitento.Sdk;

/// <summary>A capsule: the recipe of a machine, the server's defaults filled in.</summary>
public sealed class Capsule : DeployedResource
{
    /// <summary>Its properties.</summary>
    public CapsuleDefinition Definition { get; set; } = new();
}

/// <summary>The properties of a capsule.</summary>
[Schema("CapsuleDefinition")]
public sealed class CapsuleDefinition : Record
{
    /// <summary>Debian packages beside those of the image.</summary>
    public IReadOnlyList<string> Packages { get; set; } = [];

    /// <summary>Users beside <c>maitento</c>.</summary>
    public IReadOnlyList<CapsuleUser> Users { get; set; } = [];

    /// <summary>File systems that it mounts.</summary>
    public IReadOnlyList<VfsMount> Vfs { get; set; } = [];

    /// <summary>Secrets that it mounts.</summary>
    public IReadOnlyList<SecretMount> Secrets { get; set; } = [];

    /// <summary>What runs as it starts.</summary>
    public IReadOnlyList<StartupCommand> Startup { get; set; } = [];

    /// <summary>Whether it ends when its start-up commands have.</summary>
    public bool AutoTerminate { get; set; }

    /// <summary>Its longest life, from the start.</summary>
    public TimeSpan MaxDuration { get; set; }

    /// <summary>The image that it runs on; null for the server's default.</summary>
    public string? Image { get; set; }

    /// <summary>What it may use.</summary>
    public CapsuleLimits Limits { get; set; } = new();

    /// <summary><c>none</c> or <c>internet</c>.</summary>
    public string Network { get; set; } = "";

    /// <summary>Variables of all its commands.</summary>
    public IReadOnlyDictionary<string, string> Environment { get; set; } = new Dictionary<string, string>();
}

/// <summary>A user of a capsule.</summary>
public sealed class CapsuleUser : Record
{
    /// <summary>Of the user.</summary>
    public string Name { get; set; } = "";
}

/// <summary>What a run may use.</summary>
[Schema("Limits")]
public sealed class CapsuleLimits : Record
{
    /// <summary>For example <c>2GiB</c>.</summary>
    [Optional]
    public string? Memory { get; set; }

    /// <summary>Processors; null is all of the machine's.</summary>
    [Optional]
    public double? Cpus { get; set; }

    /// <summary>Processes and threads.</summary>
    [Optional]
    public int? Pids { get; set; }

    /// <summary>For example <c>10GiB</c>.</summary>
    [Optional]
    public string? Disk { get; set; }
}
