// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A failure as the server tells it (RFC 9457).</summary>
[Schema("Problem")]
public sealed class Problem : Record
{
    /// <summary><c>about:blank</c>.</summary>
    public string Type { get; set; } = "";

    /// <summary>The name of the HTTP status.</summary>
    public string Title { get; set; } = "";

    /// <summary>The HTTP status.</summary>
    public int Status { get; set; }

    /// <summary>The stable name of the kind.</summary>
    public string Code { get; set; } = "";

    /// <summary>One sentence for people: what could not be done.</summary>
    public string Detail { get; set; } = "";

    /// <summary>The member or parameter at fault.</summary>
    [Optional]
    public string? Field { get; set; }

    /// <summary>What one may do.</summary>
    public string Help { get; set; } = "";

    /// <summary>Of a deploy: faults with their places.</summary>
    [Optional]
    public IReadOnlyList<Diagnostic>? Diagnostics { get; set; }
}
