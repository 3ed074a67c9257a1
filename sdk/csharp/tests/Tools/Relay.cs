// SPDX-License-Identifier: Apache-2.0
using System.Collections.Concurrent;
using System.Net;
using System.Net.Sockets;

namespace Maitento.Sdk.Tests.Tools;

/// <summary>A way to a server over TCP that can be cut, held shut, and made to say nothing.</summary>
internal sealed class Relay : IAsyncDisposable
{
    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);
    private readonly ConcurrentDictionary<TcpClient, byte> _open = new();
    private readonly string _host;
    private readonly int _port;
    private volatile bool _isShut;
    private volatile int _era;

    public Relay(string url)
    {
        var target = new Uri(url);
        _host = target.Host;
        _port = target.Port;
        _listener.Start();
        _ = AcceptAsync();
    }

    public string Url => $"http://127.0.0.1:{((IPEndPoint)_listener.LocalEndpoint).Port}";

    /// <summary>Breaks all connections, and lets none through until <see cref="Open"/>.</summary>
    public void Cut()
    {
        _isShut = true;
        foreach (var client in _open.Keys)
            client.Close();
    }

    public void Open() => _isShut = false;

    /// <summary>Connections of before carry nothing any more, and stay open.</summary>
    public void Mute() => _era++;

    public ValueTask DisposeAsync()
    {
        Cut();
        _listener.Dispose();
        return ValueTask.CompletedTask;
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
                _ = ServeAsync(await _listener.AcceptTcpClientAsync());
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // the end
        }
    }

    private async Task ServeAsync(TcpClient client)
    {
        using var near = client;
        using var far = new TcpClient();
        if (_isShut)
            return;
        _open[near] = 0;
        _open[far] = 0;
        try
        {
            var era = _era;
            await far.ConnectAsync(_host, _port);
            await Task.WhenAny(PumpAsync(near, far, era), PumpAsync(far, near, era));
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException or IOException)
        {
            // cut
        }
        finally
        {
            _open.TryRemove(near, out _);
            _open.TryRemove(far, out _);
        }
    }

    private async Task PumpAsync(TcpClient from, TcpClient to, int era)
    {
        var buffer = new byte[1 << 16];
        while (await from.GetStream().ReadAsync(buffer) is var count and > 0)
        {
            if (era == _era)
                await to.GetStream().WriteAsync(buffer.AsMemory(0, count));
        }
    }
}
