// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;

namespace Maitento.Sdk;

/// <summary>A deployed resource, in a list.</summary>
[Schema("ResourceItem")]
public sealed class ResourceItem : Record
{
    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Where it lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>Its newest version.</summary>
    public int Version { get; set; }

    /// <summary>When its first version was deployed.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When its newest version was deployed.</summary>
    public DateTimeOffset DateUpdated { get; set; }
}

/// <summary>What all resources have in common.</summary>
public abstract class DeployedResource : Record
{
    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Where it lives.</summary>
    public string Namespace { get; set; } = "";

    /// <summary>The version that is described.</summary>
    public int Version { get; set; }

    /// <summary>All its versions.</summary>
    public IReadOnlyList<ResourceVersion> Versions { get; set; } = [];

    /// <summary>When its first version was deployed.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When its newest version was deployed.</summary>
    public DateTimeOffset DateUpdated { get; set; }
}

/// <summary>An agent, an interaction, a JSON schema or a prompt, with its definition.</summary>
[Schema("Resource")]
public sealed class Resource : DeployedResource
{
    /// <summary>Its properties as they were checked; a JSON schema or a prompt as its own kind.</summary>
    public JsonElement Definition { get; set; }
}

/// <summary>A version of a resource.</summary>
public sealed class ResourceVersion : Record
{
    /// <summary>From 1.</summary>
    public int Version { get; set; }

    /// <summary>When it was deployed.</summary>
    public DateTimeOffset DateCreated { get; set; }
}

/// <summary>An app, and what it takes.</summary>
public sealed class App : DeployedResource
{
    /// <summary>Its properties as they were checked.</summary>
    public JsonElement Definition { get; set; }

    /// <summary>In the order of the parameters of <c>main</c>; null of a program that this server does not understand any more.</summary>
    public IReadOnlyList<AppInput>? Inputs { get; set; }

    /// <summary>The type of what it returns; null as for the inputs.</summary>
    public string? Returns { get; set; }
}

/// <summary>An input of an app.</summary>
[Schema("AppInput")]
public sealed class AppInput : Record
{
    /// <summary>Of the parameter.</summary>
    public string Name { get; set; } = "";

    /// <summary><c>bool</c>, <c>int</c>, <c>decimal</c>, <c>string</c>, <c>guid</c>, <c>jsonObject</c> or <c>jsonArray</c>.</summary>
    public string Type { get; set; } = "";
}
