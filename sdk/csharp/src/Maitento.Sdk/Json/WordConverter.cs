// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Maitento.Sdk.Json;

/// <summary>A word of the API that has a type of its own. Words of a newer server are kept as they are.</summary>
internal interface IWord<TSelf>
    where TSelf : struct, IWord<TSelf>
{
    static abstract TSelf Of(string word);
}

/// <summary>Reads and writes <see cref="IWord{TSelf}"/>.</summary>
internal sealed class WordConverter<T> : JsonConverter<T>
    where T : struct, IWord<T>
{
    public override T Read(ref Utf8JsonReader reader, Type typeToConvert, JsonSerializerOptions options) => T.Of(reader.GetString() ?? "");

    public override void Write(Utf8JsonWriter writer, T value, JsonSerializerOptions options) => writer.WriteStringValue(value.ToString());
}
