// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Who is asking.</summary>
[Schema("Whoami")]
public sealed class Whoami : Record
{
    /// <summary>Of the user.</summary>
    public string Id { get; set; } = "";

    /// <summary>Of the user.</summary>
    public string Name { get; set; } = "";

    /// <summary><c>admin</c> or <c>user</c>.</summary>
    public string Role { get; set; } = "";

    /// <summary>How the caller signed in: <c>key</c>, <c>socket</c> or <c>run</c>.</summary>
    public string Via { get; set; } = "";

    /// <summary>The namespace that is meant where none is named; null while there is none.</summary>
    public string? DefaultNamespace { get; set; }
}

/// <summary>Where resources, file systems and secrets live.</summary>
[Schema("Namespace")]
public sealed class Namespace : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>The user whose it is.</summary>
    public string Owner { get; set; } = "";

    /// <summary>When it was made.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When made: true where it is the caller's default now.</summary>
    [Optional]
    public bool? BecameDefault { get; set; }

    /// <summary>When made: the default that stays.</summary>
    [Optional]
    public string? YourDefault { get; set; }
}

/// <summary>A user who shares a namespace with its owner.</summary>
[Schema("Member")]
public sealed class Member : Record
{
    /// <summary>Of the user.</summary>
    public string Id { get; set; } = "";

    /// <summary>Of the user.</summary>
    public string Name { get; set; } = "";

    /// <summary>Since when.</summary>
    public DateTimeOffset DateCreated { get; set; }
}

/// <summary>An API key.</summary>
[Schema("Key")]
public class ApiKey : Record
{
    /// <summary>Its id.</summary>
    public string Id { get; set; } = "";

    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>Whose it is.</summary>
    public string User { get; set; } = "";

    /// <summary>When it was made.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>When it ends; null for never.</summary>
    public DateTimeOffset? Expires { get; set; }

    /// <summary>When it was used last.</summary>
    public DateTimeOffset? DateLastUsed { get; set; }

    /// <summary>The run inside which it was made; it is removed at its end.</summary>
    public string? RunId { get; set; }
}

/// <summary>A key that was just made.</summary>
public sealed class NewApiKey : ApiKey
{
    /// <summary>The key itself, which no later answer has.</summary>
    public string Key { get; set; } = "";
}

/// <summary>A user of the server.</summary>
[Schema("User")]
public class User : Record
{
    /// <summary>His id.</summary>
    public string Id { get; set; } = "";

    /// <summary>His name.</summary>
    public string Name { get; set; } = "";

    /// <summary><c>admin</c> or <c>user</c>.</summary>
    public string Role { get; set; } = "";

    /// <summary>Since when.</summary>
    public DateTimeOffset DateCreated { get; set; }

    /// <summary>The run inside which he was made; he is removed at its end.</summary>
    public string? RunId { get; set; }

    /// <summary>That run has ended, and he owns namespaces still: he cannot sign in any more.</summary>
    public bool Stopped { get; set; }
}

/// <summary>A user who was just made.</summary>
public sealed class NewUser : User
{
    /// <summary>His first API key, which no later answer has.</summary>
    public string Key { get; set; } = "";
}
