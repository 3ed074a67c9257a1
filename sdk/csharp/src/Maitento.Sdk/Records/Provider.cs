// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Who answers for models, without its key, which no answer has.</summary>
[Schema("Provider")]
public sealed class Provider : Record
{
    /// <summary>Its name.</summary>
    public string Name { get; set; } = "";

    /// <summary>The protocol: <c>chat</c> or <c>messages</c>.</summary>
    public string Wire { get; set; } = "";

    /// <summary>Where it is asked; null where it has to be set.</summary>
    public string? BaseUrl { get; set; }

    /// <summary>How it is told that an answer has to fit a schema: <c>schema</c>, <c>tool</c>, <c>json</c> or <c>none</c>.</summary>
    public string SchemaMode { get; set; } = "";

    /// <summary>Requests to it at once; more wait.</summary>
    public int Concurrency { get; set; }

    /// <summary>A decimal; null where none is set.</summary>
    public string? PricePerMillionTokensIn { get; set; }

    /// <summary>A decimal; null where none is set.</summary>
    public string? PricePerMillionTokensOut { get; set; }

    /// <summary>Whether it has a key.</summary>
    public bool HasKey { get; set; }

    /// <summary>Whether it needs one.</summary>
    public bool NeedsKey { get; set; }

    /// <summary>Whether its models can be asked: nothing that it needs is missing.</summary>
    public bool Ready { get; set; }

    /// <summary>Whether anything of it was set.</summary>
    public bool IsSet { get; set; }

    /// <summary>When something of it was first set.</summary>
    public DateTimeOffset? DateCreated { get; set; }

    /// <summary>When something of it was set last.</summary>
    public DateTimeOffset? DateUpdated { get; set; }
}

/// <summary>What came of a test of a provider.</summary>
public sealed class ProviderTest : Record
{
    /// <summary><c>answered</c>, or why not.</summary>
    public EndReason Outcome { get; set; }

    /// <summary>Why there was no answer.</summary>
    public string FailureDetails { get; set; } = "";

    /// <summary>What the model said.</summary>
    public string Answer { get; set; } = "";

    /// <summary>As the provider said.</summary>
    public string? Model { get; set; }

    /// <summary>Of the last request; null when there was none.</summary>
    public int? HttpStatus { get; set; }

    /// <summary>Requests that were sent.</summary>
    public int Requests { get; set; }

    /// <summary>Null where the provider told nothing.</summary>
    public int? TokensIn { get; set; }

    /// <summary>Null where the provider told nothing.</summary>
    public int? TokensOut { get; set; }

    /// <summary>How long it took.</summary>
    public int Milliseconds { get; set; }
}
