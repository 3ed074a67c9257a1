// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>What answers at the address.</summary>
[Schema("Server")]
public sealed class ServerInfo : Record
{
    /// <summary><c>maitento</c>.</summary>
    public string Product { get; set; } = "";

    /// <summary>Of the server.</summary>
    public string Version { get; set; } = "";

    /// <summary>Of its API.</summary>
    public int ApiVersion { get; set; }
}

/// <summary>Whether the server answers.</summary>
public sealed class ServerHealth : Record
{
    /// <summary><c>ok</c>.</summary>
    public string Status { get; set; } = "";

    /// <summary>Of the server.</summary>
    public string Version { get; set; } = "";
}

/// <summary>What the server found about itself and its host.</summary>
public sealed class DoctorReport : Record
{
    /// <summary>The findings.</summary>
    public IReadOnlyList<DoctorCheck> Checks { get; set; } = [];

    /// <summary>Where the server keeps its state.</summary>
    public string StateFolder { get; set; } = "";
}

/// <summary>One finding.</summary>
[Schema("Check")]
public sealed class DoctorCheck : Record
{
    /// <summary>What was looked at.</summary>
    public string Name { get; set; } = "";

    /// <summary><c>ok</c>, <c>warning</c> or <c>failed</c>.</summary>
    public string Status { get; set; } = "";

    /// <summary>What was found.</summary>
    public string Detail { get; set; } = "";

    /// <summary>What to do; null where nothing is to be done.</summary>
    public string? Remedy { get; set; }
}
