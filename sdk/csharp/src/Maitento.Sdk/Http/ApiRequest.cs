// SPDX-License-Identifier: Apache-2.0
using System.Net.Http.Headers;
using System.Text.Json;
using System.Text.Json.Serialization.Metadata;

namespace Maitento.Sdk.Http;

/// <summary>One call of the API, which can be sent more than once.</summary>
internal sealed class ApiRequest(HttpMethod method, string path)
{
    internal static readonly TimeSpan Ordinary = TimeSpan.FromSeconds(60);

    internal HttpMethod Method { get; } = method;

    internal string Path { get; } = path;

    /// <summary>Makes the body, anew for each time that it is sent.</summary>
    internal Func<HttpContent>? Content { get; private init; }

    /// <summary>Lets a POST be repeated without being done twice.</summary>
    internal string? IdempotencyKey { get; private init; }

    /// <summary>Whether a repeat of this POST or PATCH changes nothing.</summary>
    internal bool RepeatsAlike { get; init; }

    /// <summary>Whether the content can be sent only once, as it comes from a stream that cannot go back.</summary>
    internal bool Once { get; init; }

    /// <summary>No answer, or no more of it, for so long: the connection is given up.</summary>
    internal TimeSpan AnswerWithin { get; init; } = Ordinary;

    /// <summary>Whether it takes long by its nature, and gets a connection beside those of short calls.</summary>
    internal bool IsLong { get; init; }

    internal string? Accept { get; init; }

    internal RangeHeaderValue? Range { get; init; }

    internal string? LastEventId { get; init; }

    internal bool MayRepeat => !Once && (Method == HttpMethod.Get || Method == HttpMethod.Put || Method == HttpMethod.Delete
        || RepeatsAlike || IdempotencyKey is not null);

    internal static ApiRequest Get(ApiPath path) => new(HttpMethod.Get, path.ToString());

    /// <summary>
    /// A GET that the server answers when something came of it, or after so many seconds. Without any it is a look, which goes another way
    /// soon where the one that it took has died in silence.
    /// </summary>
    internal static ApiRequest Wait(ApiPath path, int seconds) => seconds == 0
        ? new(HttpMethod.Get, path.ToString()) { AnswerWithin = TimeSpan.FromSeconds(10) }
        : new(HttpMethod.Get, path.With("wait", seconds).ToString()) { AnswerWithin = TimeSpan.FromSeconds(seconds + 10), IsLong = true };

    /// <summary>
    /// A DELETE. Its empty body keeps the HTTP client from repeating it by itself: whoever repeats has to know, as the second time
    /// finds nothing.
    /// </summary>
    internal static ApiRequest Delete(ApiPath path) => new(HttpMethod.Delete, path.ToString()) { Content = () => new ByteArrayContent([]) };

    /// <summary>A POST without a body, of something that is answered alike when it is repeated.</summary>
    internal static ApiRequest Act(ApiPath path) => new(HttpMethod.Post, path.ToString()) { RepeatsAlike = true };

    internal static ApiRequest Json<T>(HttpMethod method, ApiPath path, T body, JsonTypeInfo<T> type, bool repeatsAlike = false)
    {
        var bytes = JsonSerializer.SerializeToUtf8Bytes(body, type);
        return new ApiRequest(method, path.ToString()) { Content = () => JsonContent(bytes), RepeatsAlike = repeatsAlike };
    }

    /// <summary>A POST that is done once however often it is sent.</summary>
    internal static ApiRequest Keyed<T>(ApiPath path, T body, JsonTypeInfo<T> type, string? key, int wait = 0)
    {
        var bytes = JsonSerializer.SerializeToUtf8Bytes(body, type);
        return new ApiRequest(HttpMethod.Post, path.With("wait", wait == 0 ? null : wait).ToString())
        {
            Content = () => JsonContent(bytes),
            IdempotencyKey = key ?? Guid.NewGuid().ToString(),
            AnswerWithin = wait == 0 ? Ordinary : TimeSpan.FromSeconds(wait + 10),
            IsLong = wait > 0,
        };
    }

    /// <summary>The same for a POST without a body.</summary>
    internal static ApiRequest KeyedEmpty(ApiPath path, string? key) =>
        new(HttpMethod.Post, path.ToString()) { IdempotencyKey = key ?? Guid.NewGuid().ToString() };

    internal static ApiRequest Bytes(HttpMethod method, ApiPath path, Func<HttpContent> content, bool once = false) =>
        new(method, path.ToString()) { Content = content, Once = once, IsLong = true };

    private static ByteArrayContent JsonContent(byte[] bytes) =>
        new(bytes) { Headers = { ContentType = new MediaTypeHeaderValue("application/json") } };
}
