// SPDX-License-Identifier: Apache-2.0
using System.Collections.Concurrent;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text;

namespace Maitento.Sdk.Tests.Tools;

/// <summary>A request as it came.</summary>
internal sealed record Request(string Method, string Path, IReadOnlyDictionary<string, string> Headers, byte[] Body)
{
    public string Text => Encoding.UTF8.GetString(Body);

    public string? Header(string name) => Headers.GetValueOrDefault(name);
}

/// <summary>How a request is answered: with bytes of the test's choice, and with breaks of the connection.</summary>
internal sealed class Answer(Stream stream)
{
    public bool IsCut { get; private set; }

    public Task JsonAsync(string json, int status = 200, string headers = "")
    {
        var type = status >= 400 ? "application/problem+json" : "application/json";
        return RawAsync($"HTTP/1.1 {status} X\r\nContent-Type: {type}\r\nContent-Length: {Encoding.UTF8.GetByteCount(json)}\r\n{headers}\r\n{json}");
    }

    public Task ProblemAsync(int status, string code, string detail, string headers = "") =>
        JsonAsync($$"""{"type":"about:blank","title":"X","status":{{status}},"code":"{{code}}","detail":"{{detail}}","help":"h"}""", status, headers);

    /// <summary>Begins a body whose end is the end of its chunks.</summary>
    public Task BeginAsync(string type, string headers = "") =>
        RawAsync($"HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nTransfer-Encoding: chunked\r\n{headers}\r\n");

    public async Task ChunkAsync(byte[] bytes)
    {
        await RawAsync($"{bytes.Length:x}\r\n");
        await stream.WriteAsync(bytes);
        await RawAsync("\r\n");
    }

    public Task ChunkAsync(string text) => ChunkAsync(Encoding.UTF8.GetBytes(text));

    public Task EndAsync() => RawAsync("0\r\n\r\n");

    public async Task RawAsync(string text)
    {
        await stream.WriteAsync(Encoding.UTF8.GetBytes(text));
        await stream.FlushAsync();
    }

    public async Task RawBytesAsync(byte[] bytes)
    {
        await stream.WriteAsync(bytes);
        await stream.FlushAsync();
    }

    /// <summary>Breaks the connection off.</summary>
    public void Cut() => IsCut = true;
}

/// <summary>An HTTP server on this machine that answers as a test says.</summary>
internal sealed class ScriptedServer : IAsyncDisposable
{
    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);
    private readonly CancellationTokenSource _end = new();
    private readonly Func<Request, Answer, Task> _script;
    private readonly ConcurrentDictionary<TcpClient, byte> _clients = new();
    private int _open;

    public ScriptedServer(Func<Request, Answer, Task> script, bool isMaitento = true)
    {
        _script = script;
        IsMaitento = isMaitento;
        _listener.Start(4096);
        _ = AcceptAsync();
    }

    public bool IsMaitento { get; }

    public string Url => $"http://127.0.0.1:{((IPEndPoint)_listener.LocalEndpoint).Port}";

    /// <summary>All requests but that for /v1/server, in the order in which they came.</summary>
    public ConcurrentQueue<Request> Seen { get; } = new();

    /// <summary>The most connections that were open at a time.</summary>
    public int MostOpen { get; private set; }

    /// <summary>A client of it that reads no settings of this machine.</summary>
    public MaitentoClient Client(double patience = 5, double silence = 45, string? ns = "tests") => new(
        new MaitentoClientOptions
        {
            Url = Url,
            ApiKey = "mt_secret",
            Namespace = ns,
            Patience = TimeSpan.FromSeconds(patience),
            Silence = TimeSpan.FromSeconds(silence),
        },
        _ => null);

    public async ValueTask DisposeAsync()
    {
        await _end.CancelAsync();
        _listener.Dispose();
        foreach (var client in _clients.Keys)
            client.Close();
        _end.Dispose();
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
                _ = ServeAsync(await _listener.AcceptTcpClientAsync(_end.Token));
        }
        catch (Exception error) when (error is OperationCanceledException or SocketException or ObjectDisposedException)
        {
            // the end
        }
    }

    private async Task ServeAsync(TcpClient client)
    {
        _clients[client] = 0;
        MostOpen = Math.Max(MostOpen, Interlocked.Increment(ref _open));
        try
        {
            using (client)
            {
                client.NoDelay = true;
                var stream = client.GetStream();
                while (await ReadAsync(stream) is { } request)
                {
                    var answer = new Answer(stream);
                    if (IsMaitento && request.Path == "/v1/server")
                    {
                        await answer.JsonAsync("""{"product":"maitento","version":"0.1.0","apiVersion":1}""");
                        continue;
                    }
                    Seen.Enqueue(request);
                    await _script(request, answer);
                    if (answer.IsCut)
                    {
                        client.Client.LingerState = new LingerOption(true, 0);
                        return;
                    }
                }
            }
        }
        catch (Exception error) when (error is IOException or SocketException or ObjectDisposedException)
        {
            // the client went
        }
        finally
        {
            _clients.TryRemove(client, out _);
            Interlocked.Decrement(ref _open);
        }
    }

    private static async Task<Request?> ReadAsync(NetworkStream stream)
    {
        var head = new StringBuilder();
        var one = new byte[1];
        while (!head.ToString().EndsWith("\r\n\r\n", StringComparison.Ordinal))
        {
            if (await stream.ReadAsync(one) == 0)
                return null;
            head.Append((char)one[0]);
        }
        var lines = head.ToString().Split("\r\n", StringSplitOptions.RemoveEmptyEntries);
        var words = lines[0].Split(' ');
        var headers = lines[1..].Select(line => line.Split(": ", 2)).ToDictionary(pair => pair[0], pair => pair[1], StringComparer.OrdinalIgnoreCase);
        if (headers.ContainsKey("Expect"))
            await stream.WriteAsync("HTTP/1.1 100 Continue\r\n\r\n"u8.ToArray());
        var body = new byte[int.Parse(headers.GetValueOrDefault("Content-Length", "0"), CultureInfo.InvariantCulture)];
        await stream.ReadExactlyAsync(body);
        return new Request(words[0], words[1], headers, body);
    }
}
