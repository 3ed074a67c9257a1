// SPDX-License-Identifier: Apache-2.0
using System.Buffers;
using System.Diagnostics;
using System.Net.Http.Headers;
using Maitento.Sdk.Http;

namespace Maitento.Sdk.Files;

/// <summary>One download, which goes on where it was after a cut.</summary>
internal sealed class Download(Transport transport, Func<ApiPath> path, Stream to, IProgress<long>? progress)
{
    private const int Piece = 1 << 16;

    private long _done;
    private EntityTagHeaderValue? _tag;

    internal async Task<long> RunAsync(CancellationToken cancellation)
    {
        var patience = Patience.OfRequests(transport.Patience);
        while (true)
        {
            var asked = Stopwatch.GetTimestamp();
            var before = _done;
            TimeSpan pause;
            try
            {
                await OnceAsync(cancellation).ConfigureAwait(false);
                return _done;
            }
            catch (MaitentoException error) when (Transport.Passes(error) && transport.WasReached)
            {
                if (_done > before)
                    patience.Renew();
                pause = patience.After(error, asked);
            }
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    private async Task OnceAsync(CancellationToken cancellation)
    {
        var request = new ApiRequest(HttpMethod.Get, path().ToString())
        {
            IsLong = true,
            Range = _done > 0 ? new RangeHeaderValue(_done, null) : null,
        };
        using var watch = new Watchdog(request.AnswerWithin, cancellation);
        HttpResponseMessage answer;
        try
        {
            answer = await transport.OpenAsync(request, watch).ConfigureAwait(false);
        }
        catch (MaitentoException error) when (_done > 0 && error.Status == 416)
        {
            throw Changed();
        }
        using (answer)
        {
            if (_done > 0 && ((int)answer.StatusCode != 206 || !Equals(answer.Headers.ETag, _tag)))
                throw Changed();
            _tag = answer.Headers.ETag;
            await CopyAsync(answer, watch, cancellation).ConfigureAwait(false);
        }
    }

    private static MaitentoException Changed() =>
        new("the file became another one while it was read: read it again", ErrorCode.Conflict);

    private async Task CopyAsync(HttpResponseMessage answer, Watchdog watch, CancellationToken cancellation)
    {
        var buffer = ArrayPool<byte>.Shared.Rent(Piece);
        try
        {
            var body = await answer.Content.ReadAsStreamAsync(watch.Token).ConfigureAwait(false);
            while (await ReadAsync(body, buffer, watch, cancellation).ConfigureAwait(false) is var count and > 0)
            {
                watch.Pause();
                await to.WriteAsync(buffer.AsMemory(0, count), cancellation).ConfigureAwait(false);
                _done += count;
                progress?.Report(_done);
                watch.Feed();
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private async Task<int> ReadAsync(Stream body, byte[] buffer, Watchdog watch, CancellationToken cancellation)
    {
        try
        {
            return await body.ReadAsync(buffer, watch.Token).ConfigureAwait(false);
        }
        catch (Exception error) when (error is IOException or HttpRequestException or OperationCanceledException)
        {
            cancellation.ThrowIfCancellationRequested();
            throw transport.Broken(watch.Translate(error), wasSent: true);
        }
    }
}
