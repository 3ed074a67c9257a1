// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A file system that capsules mount, and that outlives them.</summary>
[Schema("Vfs")]
public sealed class VirtualFileSystem : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Where it lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>When it was made.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>How much it may hold.</summary>
    public long LimitBytes { get; set; }

    /// <summary>How much it holds, where it was asked for alone; null when there is too much to count.</summary>
    [Optional]
    public long? UsedBytes { get; set; }
}

/// <summary>What stands at a path. It may be given to any method that takes a path.</summary>
[Schema("Entry")]
public sealed class FileEntry : Record
{
    /// <summary>From the root; see <see cref="NameEscaped"/>.</summary>
    public string Path { get; set; } = "";

    /// <summary>The last part of the path.</summary>
    public string Name { get; set; } = "";

    /// <summary><c>file</c>, <c>folder</c>, <c>link</c>, <c>fifo</c>, <c>socket</c> or <c>device</c>.</summary>
    public string Type { get; set; } = "";

    /// <summary>In bytes.</summary>
    public long Size { get; set; }

    /// <summary>Four octal digits, <c>0660</c>.</summary>
    public string Mode { get; set; } = "";

    /// <summary>When it was changed last.</summary>
    public DateTimeOffset? DateModified { get; set; }

    /// <summary>Of a link: where it leads.</summary>
    [Optional]
    public string? Target { get; set; }

    /// <summary>The name is not UTF-8, or could not be told from an escaped one: odd bytes and <c>%</c> are written as <c>%XX</c>.</summary>
    public bool NameEscaped { get; set; }
}

/// <summary>A secret without its value, which no answer has.</summary>
[Schema("Secret")]
public sealed class Secret : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Where it lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>When it was made.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When it got its value.</summary>
    public DateTimeOffset DateUpdated { get; set; }
}
