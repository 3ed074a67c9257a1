// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Which events a stream has. Without any of these: all that the caller may see, from now on.</summary>
public sealed class EventsOptions
{
    /// <summary>Events with a higher number than this.</summary>
    public long? After { get; set; }

    /// <summary>Begin so many events back, 0 to 1,000.</summary>
    public int? Last { get; set; }

    /// <summary>Only of this namespace.</summary>
    public string? Namespace { get; set; }

    /// <summary>Only of these kinds, as <see cref="ChangeEvent.Kind"/> has them.</summary>
    public IReadOnlyList<string>? Kinds { get; set; }

    /// <summary>Only of this run (of a capsule, an app or an interaction) and of its commands.</summary>
    public string? Run { get; set; }

    /// <summary>With what the run's commands print, its app prints, or its model says. Needs <see cref="Run"/>.</summary>
    public bool Output { get; set; }

    /// <summary>Whether the stream goes on; otherwise it ends when all that is there has been told.</summary>
    public bool Follow { get; set; } = true;
}
