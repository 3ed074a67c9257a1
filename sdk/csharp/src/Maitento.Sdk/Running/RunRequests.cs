// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Nodes;
using System.Text.Json.Serialization;

namespace Maitento.Sdk;

/// <summary>With what an app is started.</summary>
[Schema("AppStartRequest")]
public sealed class AppStartRequest
{
    /// <summary>Of the app; null for the newest.</summary>
    [Optional]
    public int? Version { get; set; }

    /// <summary>
    /// By the names of the parameters of <c>main</c>, found without regard to case. A text is converted to the parameter's type; a number,
    /// true, false, an object or a list is taken as it is.
    /// </summary>
    [Optional]
    public JsonObject? Inputs { get; set; }

    /// <summary>
    /// A text of your own for this start: another call with the same one and the same content gives the run that is there already. Null:
    /// the SDK makes one.
    /// </summary>
    [JsonIgnore]
    public string? IdempotencyKey { get; set; }

    /// <summary>
    /// Called with each line that the app prints, as it prints it, by <see cref="AppsClient.RunAsync(string?, string, AppStartRequest, CancellationToken)"/>.
    /// What it throws ends the wait; the app goes on.
    /// </summary>
    [JsonIgnore]
    public Action<ConsoleLine>? OnConsole { get; set; }
}

/// <summary>With what an interaction is started.</summary>
[Schema("InteractionStartRequest")]
public sealed class InteractionStartRequest
{
    /// <summary>Of the interaction; null for the newest.</summary>
    [Optional]
    public int? Version { get; set; }

    /// <summary>By the names of the interaction's inputs, found without regard to case.</summary>
    [Optional]
    public JsonObject? Inputs { get; set; }

    /// <summary>
    /// A text of your own for this start: another call with the same one and the same content gives the run that is there already. Null:
    /// the SDK makes one.
    /// </summary>
    [JsonIgnore]
    public string? IdempotencyKey { get; set; }
}
