// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Maitento.Sdk;

/// <summary>What the server answers. Times are UTC.</summary>
public abstract class Record
{
    /// <summary>Members that a newer server sends and this version of the SDK does not know; null where there are none.</summary>
    [JsonExtensionData]
    public IDictionary<string, JsonElement>? OtherMembers { get; set; }
}
