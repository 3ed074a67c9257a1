// SPDX-License-Identifier: Apache-2.0
using System.Text.Json;
using System.Text.Json.Nodes;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Providers of models, and how they are asked.</summary>
public sealed class ProvidersClient
{
    private readonly Transport _transport;

    internal ProvidersClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>The providers that the server knows, by name, each with what holds for it.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("providers.list", "listProviders")]
    public Task<IReadOnlyList<Provider>> ListAsync(CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("providers"), SdkJson.Default.ProviderPage, cancellationToken);

    /// <summary>One provider.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>The provider.</returns>
    [Operation("providers.get", "getProvider")]
    public Task<Provider> GetAsync(string name, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Get(new ApiPath("providers", name)), SdkJson.Default.Provider, cancellationToken);

    /// <summary>Says how a provider is asked; for administrators.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="settings">What changes; what is not given stays as it is.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What holds now.</returns>
    [Operation("providers.set", "setProvider")]
    public Task<Provider> SetAsync(string name, ProviderSettings settings, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(settings);
        return _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Put, new ApiPath("providers", name), settings.Body(), SdkJson.Default.JsonObject),
            SdkJson.Default.Provider, cancellationToken);
    }

    /// <summary>Forgets all that was set of a provider, its key, too; for administrators.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>When it is done.</returns>
    [Operation("providers.delete", "deleteProvider")]
    public Task DeleteAsync(string name, CancellationToken cancellationToken = default) =>
        _transport.DoAsync(ApiRequest.Delete(new ApiPath("providers", name)), cancellationToken);

    /// <summary>Asks a model of the provider for a word, within 15 seconds, which costs a few tokens; for administrators.</summary>
    /// <param name="name">Of the provider.</param>
    /// <param name="model">As the provider calls it.</param>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>Whether it can be asked, and if not, why.</returns>
    [Operation("providers.test", "testProvider")]
    public Task<ProviderTest> TestAsync(string name, string model, CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(
            ApiRequest.Json(HttpMethod.Post, new ApiPath("providers", name, "test"), new ModelBody(model), SdkJson.Default.ModelBody),
            SdkJson.Default.ProviderTest, cancellationToken);
}

/// <summary>What changes of a provider. A member that is null stays as it is; <see cref="Forget"/> takes members away.</summary>
public sealed class ProviderSettings
{
    /// <summary>Its key: printable ASCII without blanks. It is kept sealed, and no answer has it.</summary>
    public string? Key { get; set; }

    /// <summary>Where it is asked, <c>http(s)://…</c> without user, query and fragment.</summary>
    public string? BaseUrl { get; set; }

    /// <summary>How it is told that an answer has to fit a schema: <c>schema</c>, <c>tool</c>, <c>json</c> or <c>none</c>.</summary>
    public string? SchemaMode { get; set; }

    /// <summary>Requests to it at once, 1 to 512.</summary>
    public int? Concurrency { get; set; }

    /// <summary>A decimal, in whatever currency you think.</summary>
    public string? PricePerMillionTokensIn { get; set; }

    /// <summary>A decimal, in whatever currency you think.</summary>
    public string? PricePerMillionTokensOut { get; set; }

    /// <summary>
    /// Members (<c>key</c>, <c>baseUrl</c>, <c>schemaMode</c>, …) that are taken away, so that what the server knows by itself holds again.
    /// </summary>
    public IReadOnlyList<string> Forget { get; set; } = [];

    internal JsonObject Body()
    {
        var body = new JsonObject();
        foreach (var name in Forget)
            body[JsonNamingPolicy.CamelCase.ConvertName(name)] = null;
        Set(body, "key", Key);
        Set(body, "baseUrl", BaseUrl);
        Set(body, "schemaMode", SchemaMode);
        Set(body, "concurrency", Concurrency);
        Set(body, "pricePerMillionTokensIn", PricePerMillionTokensIn);
        Set(body, "pricePerMillionTokensOut", PricePerMillionTokensOut);
        return body;
    }

    private static void Set(JsonObject body, string name, JsonNode? value)
    {
        if (value is not null)
            body[name] = value;
    }
}
