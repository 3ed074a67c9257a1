// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
namespace Maitento.Sdk;

/// <summary>A run of a capsule: one machine.</summary>
[Schema("Run")]
public sealed class CapsuleRun : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Where its capsule lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>Its capsule.</summary>
    public string Capsule { get; set; } = "";

    /// <summary>Of the capsule.</summary>
    public int Version { get; set; }

    /// <summary>What it is at.</summary>
    public RunStatus Status { get; set; }

    /// <summary>Why it ended; null while it lives.</summary>
    public EndReason? EndReason { get; set; }

    /// <summary>With <c>timeout</c>: the limit that was passed, in milliseconds.</summary>
    [Optional]
    public long? LimitMs { get; set; }

    /// <summary>With <c>signaled</c>: the signal.</summary>
    [Optional]
    public int? Signal { get; set; }

    /// <summary>With <c>terminated</c>: by whom.</summary>
    [Optional]
    public string? TerminatedBy { get; set; }

    /// <summary>Empty while it lives and when it did all that it was for; else what happened, in words.</summary>
    public string FailureDetails { get; set; } = "";

    /// <summary>Limits that it ran into.</summary>
    public IReadOnlyList<string> LimitsReached { get; set; } = [];

    /// <summary>What it may use, where it was asked for alone.</summary>
    [Optional]
    public CapsuleLimits? Limits { get; set; }

    /// <summary>As they were given at its start.</summary>
    public IReadOnlyDictionary<string, string> Labels { get; set; } = new Dictionary<string, string>();

    /// <summary>A user; <c>ada (run ID)</c> when it was started inside that run, <c>ada (app run ID)</c> when an app started it.</summary>
    public string StartedBy { get; set; } = "";

    /// <summary>The run inside which it was started.</summary>
    public string? ParentRunId { get; set; }

    /// <summary>The run of an app that started it.</summary>
    public string? ParentAppRunId { get; set; }

    /// <summary>When it was started.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When it was ready.</summary>
    public DateTimeOffset? DateReady { get; set; }

    /// <summary>When it ended.</summary>
    public DateTimeOffset? DateEnded { get; set; }

    /// <summary>Its longest life, from the start.</summary>
    public TimeSpan MaxDuration { get; set; }

    /// <summary>When that is over.</summary>
    public DateTimeOffset? Deadline { get; set; }

    /// <summary>What it runs on.</summary>
    public string Image { get; set; } = "";

    /// <summary>Of the image's content.</summary>
    public string ImageDigest { get; set; } = "";

    /// <summary>How long each part of the start took.</summary>
    public IReadOnlyList<RunPhase> Phases { get; set; } = [];

    /// <summary>When what its commands printed was removed.</summary>
    [Optional]
    public DateTimeOffset? DateOutputsRemoved { get; set; }

    /// <summary>The most memory that it used.</summary>
    public long MemoryPeakBytes { get; set; }

    /// <summary>Processor time that it used.</summary>
    public long CpuMicroseconds { get; set; }

    /// <summary>From its start to its end, or until now.</summary>
    public double RunSeconds { get; set; }

    /// <summary>What happened, where it was asked for.</summary>
    [Optional]
    public IReadOnlyList<StoryEntry>? Story { get; set; }

    /// <summary>Whether it has ended.</summary>
    [JsonIgnore]
    public bool HasEnded => Status == RunStatus.Finished || Status == RunStatus.Error;
}

/// <summary>A part of the start of a run.</summary>
public sealed class RunPhase : Record
{
    /// <summary>What was done.</summary>
    public string Name { get; set; } = "";

    /// <summary>Microseconds that it took.</summary>
    public long Us { get; set; }
}

/// <summary>Something that happened in a run.</summary>
public sealed class StoryEntry : Record
{
    /// <summary>From 1, in the order of time.</summary>
    public long Number { get; set; }

    /// <summary>When.</summary>
    public DateTimeOffset Time { get; set; }

    /// <summary><c>phase</c>, <c>startupStarted</c>, <c>startupEnded</c>, <c>ready</c>, <c>note</c>, <c>commandStarted</c>, <c>commandEnded</c>, <c>extended</c>, <c>ending</c>, <c>ended</c> or <c>closed</c>.</summary>
    public string Kind { get; set; } = "";

    /// <summary>A sentence for people.</summary>
    public string What { get; set; } = "";

    /// <summary>The command that it is about.</summary>
    [Optional]
    public string? CommandId { get; set; }
}

/// <summary>What a start would do.</summary>
[Schema("RunPlan")]
public sealed class RunPlan : Record
{
    /// <summary>True.</summary>
    public bool DryRun { get; set; }

    /// <summary>Where the capsule lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>The capsule.</summary>
    public string Capsule { get; set; } = "";

    /// <summary>Of the capsule.</summary>
    public int Version { get; set; }

    /// <summary>What it would run on.</summary>
    public string Image { get; set; } = "";

    /// <summary>Of the image's content.</summary>
    public string ImageDigest { get; set; } = "";

    /// <summary>File systems.</summary>
    public IReadOnlyList<PlannedMount> Mounts { get; set; } = [];

    /// <summary>Names of secrets, never their values.</summary>
    public IReadOnlyList<PlannedSecret> Secrets { get; set; } = [];

    /// <summary>The capsule with what the start adds.</summary>
    public CapsuleDefinition Definition { get; set; } = new();
}

/// <summary>A file system that would be mounted.</summary>
public sealed class PlannedMount : Record
{
    /// <summary>Its name.</summary>
    public string Vfs { get; set; } = "";

    /// <summary>Its id.</summary>
    public string VfsId { get; set; } = "";

    /// <summary>It would be at <c>/mnt/</c> and this.</summary>
    public string MountName { get; set; } = "";
}

/// <summary>A secret that would be mounted.</summary>
public sealed class PlannedSecret : Record
{
    /// <summary>Its name.</summary>
    public string Secret { get; set; } = "";

    /// <summary>Its id.</summary>
    public string SecretId { get; set; } = "";

    /// <summary>It would be at <c>/mnt/secrets/</c> and this.</summary>
    public string MountName { get; set; } = "";
}
