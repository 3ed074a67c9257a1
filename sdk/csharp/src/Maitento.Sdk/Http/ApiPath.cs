// SPDX-License-Identifier: Apache-2.0
using System.Globalization;
using System.Text;

namespace Maitento.Sdk.Http;

/// <summary>An address within the API, each part and each parameter encoded.</summary>
internal sealed class ApiPath
{
    private readonly StringBuilder _text = new("/v1");
    private bool _hasQuery;

    internal ApiPath(params string[] parts)
    {
        foreach (var part in parts)
            _text.Append('/').Append(Encode(part));
    }

    /// <summary>Adds a parameter; none where the value is null.</summary>
    internal ApiPath With(string name, string? value) => value is null ? this : WithEncoded(name, Uri.EscapeDataString(value));

    internal ApiPath With(string name, long? value) => With(name, value?.ToString(CultureInfo.InvariantCulture));

    /// <summary>Adds a flag; none where it is false, as that is what all of them are without being given.</summary>
    internal ApiPath With(string name, bool value) => value ? WithEncoded(name, "true") : this;

    internal ApiPath WithEncoded(string name, string value)
    {
        _text.Append(_hasQuery ? '&' : '?').Append(name).Append('=').Append(value);
        _hasQuery = true;
        return this;
    }

    /// <summary>Another one that begins as this does.</summary>
    internal ApiPath Copy()
    {
        var copy = new ApiPath { _hasQuery = _hasQuery };
        copy._text.Clear().Append(_text);
        return copy;
    }

    public override string ToString() => _text.ToString();

    private static string Encode(string part)
    {
        if (string.IsNullOrEmpty(part))
            throw new ArgumentException("a name or an id is empty");
        // Dots that are a part of their own would be taken for steps of a path on the way.
        return part is "." or ".." ? part.Replace(".", "%2E", StringComparison.Ordinal) : Uri.EscapeDataString(part);
    }
}
