// SPDX-License-Identifier: Apache-2.0
using System.Diagnostics;
using System.Security.Cryptography;

namespace Maitento.Sdk.Http;

/// <summary>How long, and how often, something is tried again while the server is away.</summary>
internal struct Patience(TimeSpan limit, TimeSpan first, TimeSpan longest)
{
    private static readonly TimeSpan WasThere = TimeSpan.FromSeconds(5);

    private long _since = Stopwatch.GetTimestamp();
    private int _tries;

    /// <summary>Of requests.</summary>
    internal static Patience OfRequests(TimeSpan limit) => new(limit, TimeSpan.FromSeconds(0.1), TimeSpan.FromSeconds(1.6));

    /// <summary>Of event streams.</summary>
    internal static Patience OfEvents(TimeSpan limit) => new(limit, TimeSpan.FromSeconds(0.2), TimeSpan.FromSeconds(5));

    /// <summary>The server was there: the time begins again.</summary>
    internal void Renew()
    {
        _since = Stopwatch.GetTimestamp();
        _tries = 0;
    }

    /// <summary>How long to pause after a failure; throws when the time is over.</summary>
    /// <param name="error">What failed.</param>
    /// <param name="asked">When it was begun, as <see cref="Stopwatch.GetTimestamp"/> told.</param>
    internal TimeSpan After(MaitentoException error, long asked)
    {
        if (Stopwatch.GetElapsedTime(asked) > WasThere) // it answered nothing, but was there until now
            Renew();
        if (Stopwatch.GetElapsedTime(_since) >= limit)
        {
            throw new MaitentoException(
                $"outcome unknown: no server for {limit.TotalSeconds:0} s: {error.Message}", ErrorCode.OutcomeUnknown, error.Status, error);
        }
        var pause = Of(_tries++, first, longest) * (1 + (RandomNumberGenerator.GetInt32(500) / 1000.0));
        return error.RetryAfter > pause && error.RetryAfter < limit ? error.RetryAfter.Value : pause;
    }

    /// <summary>The pause after so many failures, without chance.</summary>
    internal static TimeSpan Of(int tries, TimeSpan first, TimeSpan longest) =>
        tries >= 16 || first * (1 << tries) > longest ? longest : first * (1 << tries);
}
