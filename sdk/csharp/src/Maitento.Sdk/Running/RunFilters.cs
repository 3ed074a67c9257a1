// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Which runs of capsules a list has.</summary>
public sealed class CapsuleRunFilter
{
    /// <summary>Only of this namespace; null: of all that the caller may see.</summary>
    public string? Namespace { get; set; }

    /// <summary>Only of this capsule.</summary>
    public string? Capsule { get; set; }

    /// <summary>Only of this status.</summary>
    public RunStatus? Status { get; set; }

    /// <summary>Only runs whose id ends so.</summary>
    public string? IdEnding { get; set; }

    /// <summary>Only runs that the caller started.</summary>
    public bool Mine { get; set; }

    /// <summary>At most so many, the newest; null for all.</summary>
    public int? Limit { get; set; } = 100;
}

/// <summary>Which runs of apps a list has.</summary>
public sealed class AppRunFilter
{
    /// <summary>Only of this namespace; null: of all that the caller may see.</summary>
    public string? Namespace { get; set; }

    /// <summary>Only of this app.</summary>
    public string? App { get; set; }

    /// <summary>Only of this status.</summary>
    public RunStatus? Status { get; set; }

    /// <summary>Only runs whose id ends so.</summary>
    public string? IdEnding { get; set; }

    /// <summary>Only runs that the caller started.</summary>
    public bool Mine { get; set; }

    /// <summary>Only runs that this run of an app started.</summary>
    public string? Parent { get; set; }

    /// <summary>At most so many, the newest; null for all.</summary>
    public int? Limit { get; set; } = 100;
}

/// <summary>Which runs of interactions a list has.</summary>
public sealed class InteractionRunFilter
{
    /// <summary>Only of this namespace; null: of all that the caller may see.</summary>
    public string? Namespace { get; set; }

    /// <summary>Only of this interaction.</summary>
    public string? Interaction { get; set; }

    /// <summary>Only of this status.</summary>
    public RunStatus? Status { get; set; }

    /// <summary>Only runs whose id ends so.</summary>
    public string? IdEnding { get; set; }

    /// <summary>Only runs that the caller started.</summary>
    public bool Mine { get; set; }

    /// <summary>Only runs that this run of an app started.</summary>
    public string? Parent { get; set; }

    /// <summary>At most so many, the newest; null for all.</summary>
    public int? Limit { get; set; } = 100;
}
