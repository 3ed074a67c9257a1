// SPDX-License-Identifier: Apache-2.0
using System.Globalization;

namespace Maitento.Sdk.Json;

/// <summary>Times as the API takes them: UTC, with microseconds at most.</summary>
internal static class Times
{
    internal static string? Format(DateTimeOffset? time) =>
        time?.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.FFFFFF'Z'", CultureInfo.InvariantCulture);
}
