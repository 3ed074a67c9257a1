// SPDX-License-Identifier: Apache-2.0
using System.Text;
using Maitento.Sdk.Events;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Unit;

public sealed class SseReaderTests
{
    [Test]
    public async Task Frames_come_whole_however_the_body_is_cut()
    {
        const string body = "\uFEFFid: 1\nevent: change\ndata: {\"a\":\ndata: \"é €😀\"}\n\n: \n\nevent:output\r\ndata:x\r\n\r\nid: 7\rdata: y\r\rdata: never ended";
        for (var piece = 1; piece < 12; piece++)
        {
            var frames = await AllAsync(body, piece);
            Check.Same(
                new SseFrame[]
                {
                    new("change", "1", "{\"a\":\n\"é €😀\"}"),
                    new(null, null, "", IsComment: true),
                    new("output", null, "x"),
                    new(null, "7", "y"),
                },
                frames);
        }
    }

    [Test]
    public async Task Fields_that_are_not_known_are_passed_over()
    {
        Check.Same(new SseFrame[] { new("e", null, "d") }, await AllAsync("retry: 5\nnonsense\nevent: e\ndata: d\n\n", 3));
    }

    [Test]
    public async Task A_line_without_an_end_is_not_read_for_ever()
    {
        var error = await Check.ThrowsAsync<IOException>(() => AllAsync("data: " + new string('x', 17 << 20), 1 << 16));
        Check.Contains("longer than 16 MiB", error.Message);
    }

    private static async Task<List<SseFrame>> AllAsync(string body, int piece)
    {
        var reader = new SseReader(new Pieces(Encoding.UTF8.GetBytes(body), piece));
        var frames = new List<SseFrame>();
        while (await reader.ReadAsync(CancellationToken.None) is { } frame)
            frames.Add(frame);
        return frames;
    }

    /// <summary>A body that comes in pieces of a few bytes.</summary>
    private sealed class Pieces(byte[] bytes, int piece) : MemoryStream(bytes)
    {
        public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default) =>
            base.ReadAsync(buffer[..Math.Min(piece, buffer.Length)], cancellationToken);
    }
}
