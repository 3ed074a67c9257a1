// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>
/// Which server, as whom, in which namespace. What is not given comes from the environment (<c>MAITENTO_URL</c>,
/// <c>MAITENTO_API_KEY</c>, <c>MAITENTO_NAMESPACE</c>), then from <c>~/.maitento/settings.json</c> (<c>api.url</c>, <c>api.key</c>,
/// <c>defaultNamespace</c>), then the server is the one of this machine, at <c>unix:/run/maitento/api.sock</c>.
/// </summary>
public sealed class MaitentoClientOptions
{
    /// <summary><c>http://HOST[:PORT]</c>, <c>https://HOST[:PORT]</c> or <c>unix:/PATH</c>.</summary>
    public string? Url { get; set; }

    /// <summary>An API key, <c>mt_…</c>. Not needed on the Unix socket.</summary>
    public string? ApiKey { get; set; }

    /// <summary>The namespace of calls that name none.</summary>
    public string? Namespace { get; set; }

    /// <summary>
    /// For how long a server that was there before may be away: what is harmless to repeat is repeated so long (60 seconds).
    /// </summary>
    public TimeSpan Patience { get; set; } = TimeSpan.FromSeconds(60);

    /// <summary>An event stream that says nothing for so long is cut.</summary>
    internal TimeSpan Silence { get; set; } = TimeSpan.FromSeconds(45);
}
