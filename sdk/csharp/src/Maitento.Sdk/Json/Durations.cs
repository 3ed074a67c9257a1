// SPDX-License-Identifier: Apache-2.0
using System.Globalization;
using System.Text.Json;
using System.Text.Json.Serialization;
using System.Text.RegularExpressions;

namespace Maitento.Sdk.Json;

/// <summary>Durations as the API writes them: <c>hh:mm:ss</c>, with days before a dot where there are any. Hours may be more than 23.</summary>
internal sealed partial class Durations : JsonConverter<TimeSpan>
{
    public override TimeSpan Read(ref Utf8JsonReader reader, Type typeToConvert, JsonSerializerOptions options) =>
        Parse(reader.GetString()) ?? throw new JsonException("a duration is hh:mm:ss");

    public override void Write(Utf8JsonWriter writer, TimeSpan value, JsonSerializerOptions options) => writer.WriteStringValue(Format(value));

    internal static TimeSpan? Parse(string? text)
    {
        var match = Form().Match(text ?? "");
        if (!match.Success)
            return null;
        var days = match.Groups["d"].Success ? Number(match, "d") : 0;
        return TimeSpan.FromSeconds((((((days * 24) + Number(match, "h")) * 60) + Number(match, "m")) * 60) + Number(match, "s"));
    }

    internal static string Format(TimeSpan value)
    {
        if (value <= TimeSpan.Zero || value.Ticks % TimeSpan.TicksPerSecond != 0)
        {
            throw new MaitentoException($"a duration is a whole number of seconds above zero, not {value}", ErrorCode.BadField, 400)
            {
                Field = "maxDuration",
            };
        }
        return value.ToString(value.Days == 0 ? @"hh\:mm\:ss" : @"d\.hh\:mm\:ss", CultureInfo.InvariantCulture);
    }

    private static long Number(Match match, string group) => long.Parse(match.Groups[group].ValueSpan, CultureInfo.InvariantCulture);

    [GeneratedRegex(@"\A(?:(?<d>\d{1,8})\.)?(?<h>\d{2,4}):(?<m>[0-5]\d):(?<s>[0-5]\d)\z", RegexOptions.CultureInvariant)]
    private static partial Regex Form();
}
