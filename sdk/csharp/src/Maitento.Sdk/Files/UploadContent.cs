// SPDX-License-Identifier: Apache-2.0
using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.Net;
using System.Net.Http.Headers;
using System.Runtime.InteropServices;

namespace Maitento.Sdk.Files;

/// <summary>A body that comes from a stream, piece by piece. The stream stays open.</summary>
[SuppressMessage("Usage", "CA2213", Justification = "the stream is the caller's, and may be sent again")]
internal sealed class UploadContent : HttpContent
{
    private const int Piece = 1 << 16;

    private readonly Stream _from;
    private readonly long _begin;
    private readonly IProgress<long>? _progress;

    internal UploadContent(Stream from, long begin, IProgress<long>? progress)
    {
        _from = from;
        _begin = begin;
        _progress = progress;
        Headers.ContentType = new MediaTypeHeaderValue("application/octet-stream");
    }

    internal static UploadContent Of(ReadOnlyMemory<byte> content) => new(
        MemoryMarshal.TryGetArray(content, out var bytes)
            ? new MemoryStream(bytes.Array!, bytes.Offset, bytes.Count, writable: false)
            : new MemoryStream(content.ToArray(), writable: false),
        0, null);

    /// <summary>Called when a piece was sent.</summary>
    internal Action? OnPiece { get; set; }

    /// <summary>What went wrong on this side.</summary>
    internal Exception? Fault { get; private set; }

    protected override bool TryComputeLength(out long length)
    {
        length = _from.CanSeek ? _from.Length - _begin : 0;
        return _from.CanSeek;
    }

    protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) =>
        SerializeToStreamAsync(stream, context, CancellationToken.None);

    protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken)
    {
        if (_from.CanSeek)
            _from.Position = _begin;
        var left = TryComputeLength(out var length) ? length : long.MaxValue; // a file that grows is sent at the length it had
        var buffer = ArrayPool<byte>.Shared.Rent(Piece);
        try
        {
            long sent = 0;
            while (left > 0)
            {
                var count = await ReadAsync(buffer.AsMemory(0, (int)Math.Min(Piece, left)), cancellationToken).ConfigureAwait(false);
                if (count == 0)
                    break;
                await stream.WriteAsync(buffer.AsMemory(0, count), cancellationToken).ConfigureAwait(false);
                left -= count;
                sent += count;
                OnPiece?.Invoke();
                _progress?.Report(sent);
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    private async Task<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellation)
    {
        try
        {
            return await _from.ReadAsync(buffer, cancellation).ConfigureAwait(false);
        }
        catch (Exception error) when (error is not OperationCanceledException)
        {
            Fault = error;
            throw;
        }
    }
}
