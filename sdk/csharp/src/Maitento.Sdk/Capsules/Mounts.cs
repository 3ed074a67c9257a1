// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Entities.Capsules;

/// <summary>A file system that a run mounts.</summary>
public sealed class VfsMount
{
    /// <summary>Its name; empty in a capsule's definition where it is there no more.</summary>
    public string Vfs { get; set; } = "";

    /// <summary>It is at <c>/mnt/</c> and this.</summary>
    public required string MountName { get; set; }
}

/// <summary>A secret that a run mounts.</summary>
public sealed class SecretMount
{
    /// <summary>Its name; empty in a capsule's definition where it is there no more.</summary>
    public string Secret { get; set; } = "";

    /// <summary>It is at <c>/mnt/secrets/</c> and this.</summary>
    public required string MountName { get; set; }
}
