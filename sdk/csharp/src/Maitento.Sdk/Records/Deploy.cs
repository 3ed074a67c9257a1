// SPDX-License-Identifier: Apache-2.0
using System.Globalization;

namespace Maitento.Sdk;

/// <summary>What a deploy did, or with <c>dryRun</c> would do.</summary>
[Schema("DeployResult")]
public sealed class DeployResult : Record
{
    /// <summary>Whether nothing was changed.</summary>
    public bool DryRun { get; set; }

    /// <summary>What is new.</summary>
    public IReadOnlyList<Deployed> Created { get; set; } = [];

    /// <summary>What has a new version.</summary>
    public IReadOnlyList<Deployed> Updated { get; set; } = [];

    /// <summary>What is as it was.</summary>
    public IReadOnlyList<Deployed> Unchanged { get; set; } = [];

    /// <summary>What was removed, with <c>prune</c>.</summary>
    public IReadOnlyList<Deployed> Removed { get; set; } = [];

    /// <summary>What is not wrong, but odd.</summary>
    public IReadOnlyList<Diagnostic> Warnings { get; set; } = [];
}

/// <summary>A resource of a project.</summary>
[Schema("Deployed")]
public sealed class Deployed : Record
{
    /// <summary><c>agent</c>, <c>app</c>, <c>capsule</c>, <c>interaction</c>, <c>json</c> or <c>prompt</c>.</summary>
    public string Kind { get; set; } = "";

    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Its version.</summary>
    public int Version { get; set; }
}

/// <summary>A fault at a place in a project.</summary>
[Schema("Diagnostic")]
public sealed class Diagnostic : Record
{
    /// <summary>Its path in the project; null where it is of the project as a whole.</summary>
    public string? File { get; set; }

    /// <summary>From 1.</summary>
    public int Line { get; set; }

    /// <summary>In characters, from 1.</summary>
    public int Column { get; set; }

    /// <summary>What is wrong.</summary>
    public string Message { get; set; } = "";

    /// <summary>What may be meant.</summary>
    [Optional]
    public string? Hint { get; set; }

    /// <summary>The line.</summary>
    [Optional]
    public string? SourceLine { get; set; }

    /// <summary>The place and what is wrong there.</summary>
    /// <returns>For example <c>capsules/report.mtr:3:18: no file system 'sale'</c>.</returns>
    public override string ToString()
    {
        var hint = string.IsNullOrEmpty(Hint) ? "" : $" ({Hint})";
        return string.Create(CultureInfo.InvariantCulture, $"{File}:{Line}:{Column}: {Message}{hint}");
    }
}
