// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;

namespace Maitento.Sdk.Http;

/// <summary>Where the address, the key and the namespace come from: the same rule as that of mt, member by member.</summary>
internal sealed record Settings(string Url, string UrlSource, string? ApiKey, string? Namespace, string NamespaceSource)
{
    internal const string DefaultUrl = "unix:/run/maitento/api.sock";
    internal const string Shown = "~/.maitento/settings.json";

    internal static Settings Read(MaitentoClientOptions options, Func<string, string?> environment)
    {
        var (fileUrl, fileKey, fileNamespace) = ReadFile(environment("HOME"));
        var (url, urlSource) = First(
            (options.Url, "the client's options"), (environment("MAITENTO_URL"), "MAITENTO_URL"), (fileUrl, Shown), (DefaultUrl, "the default"));
        var key = First((options.ApiKey, ""), (environment("MAITENTO_API_KEY"), "")).Value;
        if (key is null && url == fileUrl) // a key goes only to the server that it was stored for
            key = First((fileKey, "")).Value;
        var (ns, nsSource) = First(
            (options.Namespace, "the client's options"), (environment("MAITENTO_NAMESPACE"), "MAITENTO_NAMESPACE"), (fileNamespace, Shown));
        return new Settings(url!, urlSource, key, ns, ns is null ? "your default on the server" : nsSource);
    }

    private static (string? Value, string Source) First(params (string? Value, string Source)[] places)
    {
        foreach (var place in places)
        {
            if (!string.IsNullOrEmpty(place.Value))
                return place;
        }
        return (null, "");
    }

    private static (string? Url, string? Key, string? Namespace) ReadFile(string? home)
    {
        if (home is null || !home.StartsWith('/'))
            return default;
        var path = Path.Combine(home, ".maitento", "settings.json");
        if (!File.Exists(path))
            return default;
        try
        {
            using var file = JsonDocument.Parse(File.ReadAllBytes(path));
            var api = Member(file.RootElement, "api");
            return (Text(api, "url", "api/url"), Text(api, "key", "api/key"), Text(file.RootElement, "defaultNamespace", "defaultNamespace"));
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException or JsonException)
        {
            throw new MaitentoException($"cannot read {Shown}: {error.Message} (correct or remove it)", ErrorCode.BadRequest, null, error);
        }
    }

    private static JsonElement Member(JsonElement value, string name) =>
        value.ValueKind == JsonValueKind.Object && value.TryGetProperty(name, out var member) ? member : default;

    private static string? Text(JsonElement value, string name, string shown) => Member(value, name) switch
    {
        { ValueKind: JsonValueKind.Undefined or JsonValueKind.Null } => null,
        { ValueKind: JsonValueKind.String } text => text.GetString(),
        _ => throw new MaitentoException($"{Shown}: {shown} must be a text (correct or remove it)", ErrorCode.BadRequest),
    };
}
