// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Net.Http.Headers;
using System.Text.Json;
using System.Text.Json.Serialization.Metadata;
using Maitento.Sdk.Files;
using Maitento.Sdk.Json;

namespace Maitento.Sdk.Http;

/// <summary>
/// Requests and answers: bounded connections, errors with their sentences, and the repeating of what is harmless to repeat. Any
/// thread may call. Short calls share a few connections; what takes long by its nature (waits, streams, contents of files) has others,
/// so that it keeps no short call waiting.
/// </summary>
internal sealed class Transport : IDisposable
{
    private const int ShortConnections = 32;
    private const int ExpectAbove = 1 << 20;
    private const int ProblemMax = 4 << 20;

    private readonly Settings _settings;
    private readonly Address _address;
    private readonly AuthenticationHeaderValue? _authorization;
    private readonly HttpClient _short;
    private readonly HttpClient _long;
    private readonly SemaphoreSlim _checking = new(1, 1);
    private volatile bool _isMaitento;

    [SuppressMessage("Reliability", "CA2000", Justification = "a client owns its handler")]
    internal Transport(Settings settings, TimeSpan patience)
    {
        _settings = settings;
        _address = new Address(settings.Url);
        Patience = patience;
        if (settings.ApiKey is { } key)
        {
            if (key.Any(c => c is < '!' or > '~'))
                throw new MaitentoException("the API key holds a blank or control character: it is no key", ErrorCode.BadRequest);
            _authorization = new AuthenticationHeaderValue("Bearer", key);
        }
        _short = new HttpClient(_address.NewHandler(ShortConnections)) { Timeout = Timeout.InfiniteTimeSpan };
        _long = new HttpClient(_address.NewHandler(int.MaxValue)) { Timeout = Timeout.InfiniteTimeSpan };
    }

    internal TimeSpan Patience { get; }

    /// <summary>Whether the server answered ever.</summary>
    internal bool WasReached => _isMaitento;

    public void Dispose()
    {
        _short.Dispose();
        _long.Dispose();
        _checking.Dispose();
    }

    // ---- what callers use ----

    /// <summary>The answer's body as a record.</summary>
    internal Task<T> JsonAsync<T>(ApiRequest request, JsonTypeInfo<T> type, CancellationToken cancellation) =>
        PatientlyAsync(request, (answer, watch) => ReadJsonAsync(answer, type, watch), cancellation);

    /// <summary>For answers without a body.</summary>
    internal Task DoAsync(ApiRequest request, CancellationToken cancellation) => DoneAsync(request, cancellation);

    /// <summary>The same, where a result is wanted.</summary>
    internal Task<bool> DoneAsync(ApiRequest request, CancellationToken cancellation) =>
        PatientlyAsync(request, static (_, _) => Task.FromResult(true), cancellation);

    /// <summary>The answer's body, all of it.</summary>
    internal Task<byte[]> BytesAsync(ApiRequest request, CancellationToken cancellation) =>
        PatientlyAsync(request, static (answer, watch) => answer.Content.ReadAsByteArrayAsync(watch.Token), cancellation);

    /// <summary>All items of a list, page by page; at most <paramref name="limit"/> of them.</summary>
    internal async Task<IReadOnlyList<T>> PagesAsync<T>(
        ApiPath path, JsonTypeInfo<Page<T>> type, CancellationToken cancellation, int? limit = null)
    {
        const int pageMax = 1000;
        var items = new List<T>();
        string? after = null;
        if (limit is <= 0)
            return items;
        do
        {
            var size = Math.Min(limit - items.Count ?? pageMax, pageMax);
            var page = await JsonAsync(ApiRequest.Get(path.Copy().With("limit", size).With("after", after)), type, cancellation)
                .ConfigureAwait(false);
            items.AddRange(page.Items);
            after = page.Next;
        }
        while (!string.IsNullOrEmpty(after) && !(items.Count >= limit));
        return items;
    }

    /// <summary>
    /// Sends a request, reads its answer with <paramref name="read"/>, and does both again while the server is away, where the request
    /// may be repeated.
    /// </summary>
    internal async Task<T> PatientlyAsync<T>(
        ApiRequest request, Func<HttpResponseMessage, Watchdog, Task<T>> read, CancellationToken cancellation)
    {
        await EnsureMaitentoAsync(cancellation).ConfigureAwait(false);
        var patience = Http.Patience.OfRequests(Patience);
        var unsure = false; // an earlier try may have been carried out
        while (true)
        {
            var asked = Stopwatch.GetTimestamp();
            TimeSpan pause;
            try
            {
                return await OnceAsync(request, read, cancellation).ConfigureAwait(false);
            }
            catch (MaitentoException error) when (request.MayRepeat && Passes(error))
            {
                unsure |= error.WasSent;
                pause = patience.After(error, asked);
            }
            catch (MaitentoException error) when (unsure && request.Method == HttpMethod.Delete && error.Code == ErrorCode.NotFound)
            {
                return default!; // removed by the try whose answer was lost; a DELETE has no body to read
            }
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    /// <summary>Sends a request once. The answer is the caller's, with its body still to come.</summary>
    internal async Task<HttpResponseMessage> OpenAsync(ApiRequest request, Watchdog watch)
    {
        await EnsureMaitentoAsync(watch.Caller).ConfigureAwait(false);
        return await SendAsync(request, watch).ConfigureAwait(false);
    }

    /// <summary>Whether an error is one of a server that is away for a moment.</summary>
    internal static bool Passes(MaitentoException error) =>
        error.Code == ErrorCode.Unreachable || (error.Code == ErrorCode.OutcomeUnknown && error.Status is null) || error.Status is 502 or 503 or 504;

    /// <summary>What a broken connection means, in words.</summary>
    internal MaitentoException Broken(Exception error, bool wasSent, bool unknown = false)
    {
        var why = error switch
        {
            HttpRequestException { InnerException: { } inner } => inner.Message,
            TimeoutException => error.Message,
            _ => error.Message,
        };
        var message = unknown
            ? $"the answer of the server at {_settings.Url} was lost ({why}): see what became of it before you repeat it"
            : $"cannot reach the server at {_settings.Url} ({From}): {why}. {WayOut}";
        return new MaitentoException(message, unknown ? ErrorCode.OutcomeUnknown : ErrorCode.Unreachable, null, error) { WasSent = wasSent };
    }

    // ---- one request ----

    private string From => _settings.UrlSource == "the default" ? "the default: nothing else is set" : $"from {_settings.UrlSource}";

    private string WayOut => _settings.UrlSource == "the default"
        ? "Set MAITENTO_URL, or sign in with mt login, or start maitentod on this machine"
        : "Check the address, and that maitentod runs there";

    private async Task<T> OnceAsync<T>(
        ApiRequest request, Func<HttpResponseMessage, Watchdog, Task<T>> read, CancellationToken cancellation)
    {
        using var watch = new Watchdog(request.AnswerWithin, cancellation);
        using var answer = await SendAsync(request, watch).ConfigureAwait(false);
        try
        {
            return await read(answer, watch).ConfigureAwait(false);
        }
        catch (Exception error) when (IsOfTheWay(error))
        {
            cancellation.ThrowIfCancellationRequested();
            throw Broken(watch.Translate(error), wasSent: true, unknown: !request.MayRepeat && request.Method != HttpMethod.Get);
        }
    }

    private async Task<HttpResponseMessage> SendAsync(ApiRequest request, Watchdog watch)
    {
        using var message = new HttpRequestMessage(request.Method, _address.At(request.Path));
        message.Headers.UserAgent.Add(new ProductInfoHeaderValue("maitento-csharp", SdkVersion.Text));
        message.Headers.Authorization = _authorization;
        if (request.IdempotencyKey is { } key)
            message.Headers.TryAddWithoutValidation("Idempotency-Key", key);
        if (request.Accept is { } accept)
            message.Headers.Accept.ParseAdd(accept);
        if (request.LastEventId is { } id)
            message.Headers.TryAddWithoutValidation("Last-Event-ID", id);
        message.Headers.Range = request.Range;
        message.Content = request.Content?.Invoke();
        var upload = message.Content as UploadContent;
        if (upload is not null)
        {
            upload.OnPiece = watch.Feed;
            if (upload.Headers.ContentLength is null or > ExpectAbove)
                message.Headers.ExpectContinue = true; // an answer that refuses comes before the bytes go
        }
        watch.Feed();
        HttpResponseMessage answer;
        try
        {
            answer = await (request.IsLong ? _long : _short)
                .SendAsync(message, HttpCompletionOption.ResponseHeadersRead, watch.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (IsOfTheWay(error))
        {
            watch.ThrowIfCallerCancelled();
            if (upload?.Fault is { } fault)
                throw new IOException($"the content could not be read: {fault.Message}", fault);
            var wasSent = !IsOfConnecting(error) || watch.HasBitten;
            throw Broken(watch.Translate(error), wasSent, unknown: wasSent && !request.MayRepeat && request.Method != HttpMethod.Get);
        }
        if (answer.IsSuccessStatusCode)
            return answer;
        using (answer)
            throw await FailureAsync(answer, watch).ConfigureAwait(false);
    }

    private static bool IsOfTheWay(Exception error) =>
        error is HttpRequestException or IOException or OperationCanceledException or System.Net.Sockets.SocketException;

    private static bool IsOfConnecting(Exception error) => error is HttpRequestException
    {
        HttpRequestError: HttpRequestError.ConnectionError or HttpRequestError.NameResolutionError
            or HttpRequestError.SecureConnectionError or HttpRequestError.ProxyTunnelError,
    };

    private async Task<MaitentoException> FailureAsync(HttpResponseMessage answer, Watchdog watch)
    {
        var status = (int)answer.StatusCode;
        var problem = await ReadProblemAsync(answer, watch).ConfigureAwait(false);
        var code = string.IsNullOrEmpty(problem?.Code) ? ErrorCode.Of(status) : problem.Code;
        var message = string.IsNullOrEmpty(problem?.Detail) ? $"the server at {_settings.Url} answered with status {status}" : problem.Detail;
        var diagnostics = problem?.Diagnostics ?? [];
        foreach (var found in diagnostics)
            message += $"\n  {found}";
        return new MaitentoException(message, code, status)
        {
            Field = problem?.Field,
            Help = problem?.Help,
            Diagnostics = diagnostics,
            RetryAfter = answer.Headers.RetryAfter?.Delta,
            Problem = problem,
        };
    }

    private static async Task<Problem?> ReadProblemAsync(HttpResponseMessage answer, Watchdog watch)
    {
        if (answer.Content.Headers.ContentLength > ProblemMax)
            return null;
        try
        {
            var stream = await answer.Content.ReadAsStreamAsync(watch.Token).ConfigureAwait(false);
            return await JsonSerializer.DeserializeAsync(stream, SdkJson.Default.Problem, watch.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (error is JsonException || IsOfTheWay(error))
        {
            watch.ThrowIfCallerCancelled();
            return null; // the status says enough
        }
    }

    private async Task<T> ReadJsonAsync<T>(HttpResponseMessage answer, JsonTypeInfo<T> type, Watchdog watch)
    {
        var stream = await answer.Content.ReadAsStreamAsync(watch.Token).ConfigureAwait(false);
        try
        {
            return await JsonSerializer.DeserializeAsync(stream, type, watch.Token).ConfigureAwait(false)
                ?? throw new JsonException("it is null");
        }
        catch (JsonException error)
        {
            throw new MaitentoException(
                $"the answer of the server at {_settings.Url} is not understood: {error.Message}", ErrorCode.Internal, (int)answer.StatusCode, error);
        }
    }

    // ---- is it ours? ----

    /// <summary>Asks once, before the first other request. A server that was never there is not waited for.</summary>
    private async Task EnsureMaitentoAsync(CancellationToken cancellation)
    {
        if (_isMaitento)
            return;
        await _checking.WaitAsync(cancellation).ConfigureAwait(false);
        try
        {
            if (!_isMaitento)
                await CheckAsync(cancellation).ConfigureAwait(false);
            _isMaitento = true;
        }
        finally
        {
            _checking.Release();
        }
    }

    private async Task CheckAsync(CancellationToken cancellation)
    {
        ServerInfo? info;
        try
        {
            info = await OnceAsync(
                ApiRequest.Get(new ApiPath("server")), (answer, watch) => ReadJsonAsync(answer, SdkJson.Default.ServerInfo, watch), cancellation)
                .ConfigureAwait(false);
        }
        catch (MaitentoException error) when (error.InnerException is HttpRequestException { HttpRequestError: HttpRequestError.InvalidResponse })
        {
            throw NotMaitento("it does not speak HTTP", error);
        }
        catch (MaitentoException error) when (error.InnerException is JsonException)
        {
            throw NotMaitento("its answer to GET /v1/server is not JSON of ours", error);
        }
        catch (MaitentoException error) when (error.Status is not null and not (502 or 503 or 504))
        {
            throw NotMaitento($"it answers GET /v1/server with status {error.Status}", error);
        }
        if (info.Product != "maitento")
            throw NotMaitento(info.Product.Length == 0 ? "its answer to GET /v1/server names no product" : $"it is '{info.Product}'", null);
    }

    private MaitentoException NotMaitento(string why, MaitentoException? error) =>
        new($"what answers at {_settings.Url} is not a Maitento server: {why} (the address is {From})", ErrorCode.NotMaitento, error?.Status, error);
}
