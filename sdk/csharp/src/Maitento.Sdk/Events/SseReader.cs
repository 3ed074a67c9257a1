// SPDX-License-Identifier: Apache-2.0
using System.Buffers;
using System.Text;

namespace Maitento.Sdk.Events;

/// <summary>One frame of server-sent events. A comment has neither name nor data, and tells only that the server lives.</summary>
internal sealed record SseFrame(string? Event, string? Id, string Data, bool IsComment = false);

/// <summary>Takes a body apart into frames, however it was cut into pieces on its way.</summary>
internal sealed class SseReader(Stream body)
{
    private const int LineMax = 16 << 20;

    private readonly byte[] _buffer = new byte[16 << 10];
    private readonly ArrayBufferWriter<byte> _line = new();
    private int _at;
    private int _end;
    private bool _afterReturn;
    private bool _begun;

    /// <summary>The next frame or comment; null when the body has ended (a frame that was not finished is none).</summary>
    internal async ValueTask<SseFrame?> ReadAsync(CancellationToken cancellation)
    {
        string? name = null, id = null;
        StringBuilder? data = null;
        while (await ReadLineAsync(cancellation).ConfigureAwait(false) is { } line)
        {
            if (line.Length == 0)
            {
                if (data is not null || name is not null)
                    return new SseFrame(name, id, data?.ToString() ?? "");
                continue;
            }
            if (line[0] == ':')
            {
                if (data is null && name is null && id is null)
                    return new SseFrame(null, null, "", IsComment: true);
                continue;
            }
            var colon = line.IndexOf(':', StringComparison.Ordinal);
            var field = colon < 0 ? line : line[..colon];
            var value = colon < 0 ? "" : line[(colon + 1)..];
            if (value.StartsWith(' '))
                value = value[1..];
            switch (field)
            {
                case "event":
                    name = value;
                    break;
                case "id":
                    id = value;
                    break;
                case "data":
                    data = data is null ? new StringBuilder(value) : data.Append('\n').Append(value);
                    break;
                default:
                    break; // "retry", and what is not known
            }
        }
        return null;
    }

    /// <summary>A line without its end, which is CR LF, LF or CR.</summary>
    private async ValueTask<string?> ReadLineAsync(CancellationToken cancellation)
    {
        while (true)
        {
            if (_at < _end && TakeLine() is { } line)
                return line;
            _at = 0;
            _end = await body.ReadAsync(_buffer, cancellation).ConfigureAwait(false);
            if (_end == 0)
                return null;
        }
    }

    /// <summary>The line that ends in what was read; null where none does, and what was read is kept as its beginning.</summary>
    private string? TakeLine()
    {
        if (_afterReturn && _buffer[_at] == '\n')
            _at++;
        _afterReturn = false;
        var rest = _buffer.AsSpan(_at, _end - _at);
        var length = rest.IndexOfAny((byte)'\n', (byte)'\r');
        if (_line.WrittenCount + (length < 0 ? rest.Length : length) > LineMax)
            throw new IOException($"a line of the event stream is longer than {LineMax >> 20} MiB");
        if (length < 0)
        {
            _line.Write(rest);
            _at = _end;
            return null;
        }
        _line.Write(rest[..length]);
        _afterReturn = rest[length] == '\r';
        _at += length + 1;
        return Text();
    }

    private string Text()
    {
        var text = Encoding.UTF8.GetString(_line.WrittenSpan);
        _line.Clear();
        var hasMark = !_begun && text.StartsWith('\uFEFF');
        _begun = true;
        return hasMark ? text[1..] : text;
    }
}
