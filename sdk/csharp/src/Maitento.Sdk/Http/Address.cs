// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text.RegularExpressions;

namespace Maitento.Sdk.Http;

/// <summary>A server's address, taken apart: a Unix socket, or a host with a port.</summary>
internal sealed partial class Address
{
    private static readonly TimeSpan ConnectWithin = TimeSpan.FromSeconds(10);

    private readonly string? _socket;
    private readonly string _origin;
    private readonly bool _local;

    internal Address(string url)
    {
        if (url.StartsWith("unix:/", StringComparison.Ordinal))
        {
            _socket = url["unix:".Length..];
            _origin = "http://localhost";
            return;
        }
        var match = Form().Match(url);
        if (!match.Success || (match.Groups["port"].Success && int.Parse(match.Groups["port"].Value, CultureInfo.InvariantCulture) > 65535))
        {
            var shown = url.Contains('@', StringComparison.Ordinal) ? "it" : $"'{url}'"; // it may hold a password
            throw new MaitentoException(
                $"the address is wrong: {shown} should be http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH", ErrorCode.BadRequest);
        }
        _origin = url.TrimEnd('/');
        var host = match.Groups["host"].Value.Trim('[', ']');
        _local = host == "localhost" || (IPAddress.TryParse(host, out var ip) && IPAddress.IsLoopback(ip));
    }

    /// <summary>The address of a path. Nothing in it is normalised: what is encoded stays so.</summary>
    internal Uri At(string path) =>
        new(_origin + path, new UriCreationOptions { DangerousDisablePathAndQueryCanonicalization = true });

    /// <summary>Connections to it, at most so many at a time.</summary>
    internal SocketsHttpHandler NewHandler(int connections)
    {
        var handler = new SocketsHttpHandler
        {
            AllowAutoRedirect = false, // a key goes to no other address
            UseCookies = false,
            UseProxy = _socket is null && !_local,
            ConnectTimeout = ConnectWithin,
            Expect100ContinueTimeout = TimeSpan.FromSeconds(2),
            MaxConnectionsPerServer = connections,
            PooledConnectionIdleTimeout = TimeSpan.FromSeconds(30), // the server closes after 75 s
        };
        if (_socket is not null)
            handler.ConnectCallback = (_, cancellation) => ConnectAsync(_socket, cancellation);
        return handler;
    }

    [SuppressMessage("Reliability", "CA2000", Justification = "the network stream owns the socket")]
    private static async ValueTask<Stream> ConnectAsync(string path, CancellationToken cancellation)
    {
        var socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
        try
        {
            await socket.ConnectAsync(new UnixDomainSocketEndPoint(path), cancellation).ConfigureAwait(false);
            return new NetworkStream(socket, ownsSocket: true);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    [GeneratedRegex(@"\Ahttps?://(?<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?<port>[0-9]{1,5}))?/?\z")]
    private static partial Regex Form();
}
