// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk.Access;

/// <summary>Which namespace is meant: the one that is named, or that of options, environment and settings, or the server's default.</summary>
internal sealed class NamespaceScope(Transport transport, Settings settings)
{
    private volatile string? _serverDefault;

    internal string? Default => settings.Namespace;

    /// <summary>The user's default may be another from now on.</summary>
    internal void Forget() => _serverDefault = null;

    /// <summary>Calls something in a namespace. "Not found" says which it was and why, where the caller named none.</summary>
    internal async Task<T> CallAsync<T>(string? named, Func<string, Task<T>> call, CancellationToken cancellation)
    {
        var (ns, source) = await ResolveAsync(named, cancellation).ConfigureAwait(false);
        try
        {
            return await call(ns).ConfigureAwait(false);
        }
        catch (MaitentoException error) when (error.Code == ErrorCode.NotFound && source.Length > 0 && error is not CapsuleCommandAbortedException)
        {
            throw new MaitentoException($"{error.Message} (namespace '{ns}' is from {source})", error.Code, error.Status, error.InnerException)
            {
                Field = error.Field,
                Help = error.Help,
                Problem = error.Problem,
            };
        }
    }

    /// <summary>The name, and where it came from where the caller named none.</summary>
    internal async Task<(string Name, string Source)> ResolveAsync(string? named, CancellationToken cancellation)
    {
        if (!string.IsNullOrEmpty(named))
            return (named, "");
        if (settings.Namespace is { } own)
            return (own, settings.NamespaceSource);
        if (_serverDefault is null)
        {
            var me = await transport.JsonAsync(ApiRequest.Get(new ApiPath("whoami")), SdkJson.Default.Whoami, cancellation).ConfigureAwait(false);
            _serverDefault = me.DefaultNamespace ?? throw new MaitentoException(
                "no namespace is named and you have no default: Namespaces.CreateAsync(name) makes one", ErrorCode.BadRequest);
        }
        return (_serverDefault, settings.NamespaceSource);
    }

    /// <summary>Null in place of "not found".</summary>
    internal static async Task<T?> FindAsync<T>(Task<T> task)
        where T : class
    {
        try
        {
            return await task.ConfigureAwait(false);
        }
        catch (MaitentoException error) when (error.Code == ErrorCode.NotFound)
        {
            return null;
        }
    }
}
