// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A shell on a terminal in a run.</summary>
[Schema("Shell")]
public sealed class Shell : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>The run that it is in.</summary>
    public string RunId { get; set; } = "";

    /// <summary>Whose shell it is.</summary>
    public string User { get; set; } = "";

    /// <summary>The kind of terminal.</summary>
    public string Term { get; set; } = "";

    /// <summary>Of the terminal.</summary>
    public int Columns { get; set; }

    /// <summary>Of the terminal.</summary>
    public int Rows { get; set; }

    /// <summary><c>Running</c> or <c>Ended</c>.</summary>
    public string Status { get; set; } = "";

    /// <summary>128 and the signal where one killed it; null unless it exited.</summary>
    public int? ExitCode { get; set; }

    /// <summary>Why it ended: <c>exited</c>, <c>runEnded</c>, <c>closed</c>, <c>abandoned</c> or <c>failed</c>.</summary>
    public EndReason? EndReason { get; set; }

    /// <summary>A sentence about an end that was not the shell's own.</summary>
    public string? Details { get; set; }

    /// <summary>When it was started.</summary>
    public DateTimeOffset? DateCreated { get; set; }

    /// <summary>When it ended.</summary>
    public DateTimeOffset? DateEnded { get; set; }
}

/// <summary>The shells of a run.</summary>
internal sealed class ShellList
{
    /// <summary>The newest first.</summary>
    public IReadOnlyList<Shell> Items { get; set; } = [];
}
