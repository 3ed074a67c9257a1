// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A base image that capsules may run on.</summary>
[Schema("Image")]
public sealed class Image : Record
{
    /// <summary>As capsules name it.</summary>
    public string Name { get; set; } = "";

    /// <summary>Of its content.</summary>
    public string Digest { get; set; } = "";

    /// <summary>How large it is.</summary>
    [Optional]
    public long? SizeBytes { get; set; }

    /// <summary>When it was made.</summary>
    [Optional]
    public string? DateBuilt { get; set; }

    /// <summary>What is in it.</summary>
    [Optional]
    public IReadOnlyList<ImageComponent> Components { get; set; } = [];

    /// <summary>Parts that could not be had when it was built.</summary>
    [Optional]
    public IReadOnlyList<string> Missing { get; set; } = [];
}

/// <summary>A program of an image.</summary>
public sealed class ImageComponent : Record
{
    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Its version.</summary>
    public string Version { get; set; } = "";
}

/// <summary>What was removed.</summary>
public sealed class ImagesPruned : Record
{
    /// <summary>Layers of packages.</summary>
    public int LayersRemoved { get; set; }

    /// <summary>Their size.</summary>
    public long BytesFreed { get; set; }
}
