// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Live;

public sealed class FileTests
{
    private static readonly string[] Odd =
    [
        "a b", "naïve-日本.txt", "-rf", "q\"q", "b\\b", "h#h", "p%41", "q?x=1", "plus+", "at@ns", "n\nl", "e\u0301", "é", "&;=", "100%",
        new string('n', 255),
    ];

    [Test]
    public async Task Text_and_bytes_come_back_as_they_were() // 10, 12
    {
        await using var mt = LiveServer.Client(await LiveServer.SharedAsync());
        var vfs = await mt.VirtualFileSystems.CreateAsync(null, LiveServer.NewName("text"));
        const string text = "order,product\r\n1001,Träger €😀\0\r\n";
        await mt.VirtualFileSystems.WriteTextById(vfs.Id, "/deep/er/text.csv", text);
        Check.Equal(text, await mt.VirtualFileSystems.ReadTextById(vfs.Id, "/deep/er/text.csv"));
        var files = mt.VirtualFileSystems.Open(null, vfs.Name);
        await files.WriteAsync("/raw", new byte[] { 0, 255, 254, 13, 10 });
        Check.Same(new byte[] { 0, 255, 254, 13, 10 }, await files.ReadAsync("/raw"));
        await files.WriteTextAsync("/empty", "");
        Check.Equal("", await files.ReadTextAsync("/empty"));
        Check.Equal("badPath", (await Check.ThrowsAsync<MaitentoException>(() => files.WriteTextAsync("/a/../../x", "x"))).Code);
        await mt.VirtualFileSystems.DeleteAsync(null, vfs.Name);
        Check.Equal(null, await mt.VirtualFileSystems.GetByNameAsync(null, vfs.Name));
    }

    [Test]
    public async Task Odd_names_lead_to_those_files_only() // O-21
    {
        await using var bench = await Bench.StartAsync();
        var inside = await bench.RunAsync("mkdir /mnt/work/odd && cd /mnt/work/odd && for n in \"$@\"; do printf %s \"$n\" > \"./$n\"; done; printf %s odd > \"$(printf 'x\\377y')\"; true");
        Check.Equal(0, inside.ExitCode);
        var made = await bench.RunAsync("bash", ["-c", "cd /mnt/work/odd && for n in \"$@\"; do printf %s \"$n\" > \"./$n\"; done", "bash", .. Odd]);
        Check.Equal((0, ""), (made.ExitCode!.Value, made.OutputError));
        var files = bench.Mt.VirtualFileSystems.Open(null, "work");
        var list = await files.ListAsync("/odd");
        Check.Equal(Odd.Length + 1, list.Count);
        foreach (var name in Odd)
            Check.Equal(name, await files.ReadTextAsync($"/odd/{name}"));
        foreach (var entry in list)
        {
            var content = await files.ReadTextAsync(entry);
            Check.That(Odd.Contains(content) || content == "odd");
            var moved = await files.MoveAsync(entry, "/odd/moved", replace: true);
            Check.Equal(content, await files.ReadTextAsync("/odd/moved"));
            await files.MoveAsync(moved, entry);
            await files.DeleteAsync(entry);
        }
        Check.Equal(0, (await files.ListAsync("/odd")).Count);
        foreach (var name in Odd)
            await files.WriteTextAsync($"/odd/{name}", name);
        var seen = await bench.RunAsync("bash", ["-c", "cd /mnt/work/odd && for n in \"$@\"; do [ \"$(cat \"./$n\")\" = \"$n\" ] || echo \"$n\"; done", "bash", .. Odd]);
        Check.Equal("", seen.OutputStandard);
    }

    [Test]
    public async Task Large_files_pass_in_constant_memory_with_progress()
    {
        const long size = 300L << 20;
        await using var bench = await Bench.StartAsync();
        var files = bench.Mt.VirtualFileSystems.Open(null, "work");
        var before = GC.GetTotalAllocatedBytes();
        var sent = new Told();
        var entry = await files.UploadAsync("/large", new Endless(size), sent);
        Check.Equal(size, entry.Size);
        var received = new Told();
        var sink = new Sink();
        Check.Equal(size, await files.DownloadAsync("/large", sink, received));
        Check.Equal((size, size, size), (sent.Last, received.Last, sink.Length));
        Check.That(sent.Count > 100 && received.Count > 100 && sent.IsRising && received.IsRising);
        Check.That(Environment.WorkingSet < 1L << 30);
        Check.That(GC.GetTotalAllocatedBytes() - before < 4 * size); // other tests run beside this one
        Check.Equal("4294967295", (await bench.RunAsync("tail -c 4 /mnt/work/large | od -An -tu4 | tr -d ' \\n'")).OutputStandard);
        await files.DeleteAsync("/large");
    }

    [Test]
    public async Task Files_of_a_run_are_those_of_its_user()
    {
        await using var bench = await Bench.StartAsync();
        var mine = bench.Mt.CapsuleProcesses.Files(bench.Id);
        await mine.WriteTextAsync("notes/a.txt", "hé");
        Check.Equal("hé", await mine.ReadTextAsync("/home/maitento/notes/a.txt"));
        Check.Same(["notes"], (await mine.ListAsync()).Where(entry => !entry.Name.StartsWith('.')).Select(entry => entry.Name));
        await mine.MakeFolderAsync("deep/er");
        await mine.LinkAsync("link", "notes/a.txt");
        Check.Equal("hé", await mine.ReadTextAsync("link"));
        await mine.DeleteAsync("notes", recursive: true);
        var theirs = bench.Mt.CapsuleProcesses.Files(bench.Id, "sandbox");
        Check.Equal("accessDenied", (await Check.ThrowsAsync<MaitentoException>(() => theirs.ReadTextAsync("/mnt/work/x"))).Code);
        var error = await Check.ThrowsAsync<MaitentoException>(() => mine.ReadTextAsync("/none"));
        Check.Equal((ErrorCode.NotFound, 404), (error.Code, error.Status!.Value));
    }

    private sealed class Told : IProgress<long>
    {
        public int Count { get; private set; }

        public long Last { get; private set; }

        public bool IsRising { get; private set; } = true;

        public void Report(long value)
        {
            IsRising &= value > Last;
            Last = value;
            Count++;
        }
    }

    /// <summary>Bytes of 255 up to a size, from nowhere, which cannot be sent again.</summary>
    private sealed class Endless(long size) : Stream
    {
        private long _left = size;

        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => false;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

        public override int Read(byte[] buffer, int offset, int count)
        {
            var length = (int)Math.Min(count, _left);
            buffer.AsSpan(offset, length).Fill(255);
            _left -= length;
            return length;
        }

        public override void Flush() => throw new NotSupportedException();

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();
    }

    private sealed class Sink : Stream
    {
        private long _length;

        public override bool CanRead => false;

        public override bool CanSeek => false;

        public override bool CanWrite => true;

        public override long Length => _length;

        public override long Position { get => _length; set => throw new NotSupportedException(); }

        public override void Write(byte[] buffer, int offset, int count) => _length += count;

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
        {
            _length += buffer.Length;
            return ValueTask.CompletedTask;
        }

        public override void Flush()
        {
        }

        public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();
    }
}
