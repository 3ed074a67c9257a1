// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>Values of <see cref="MaitentoException.Code"/> that programs ask for most. The server may send others.</summary>
public static class ErrorCode
{
    /// <summary>A fault of the server.</summary>
    public const string Internal = "internal";

    /// <summary>A request, a setting or an argument is wrong.</summary>
    public const string BadRequest = "badRequest";

    /// <summary>A member of a request is wrong: <see cref="MaitentoException.Field"/> names it.</summary>
    public const string BadField = "badField";

    /// <summary>The key is missing, wrong or expired.</summary>
    public const string Unauthenticated = "unauthenticated";

    /// <summary>The caller may not do this.</summary>
    public const string Forbidden = "forbidden";

    /// <summary>There is no such thing, or the caller may not see it.</summary>
    public const string NotFound = "notFound";

    /// <summary>Something stands in the way; the message lists it.</summary>
    public const string Conflict = "conflict";

    /// <summary>The name is taken.</summary>
    public const string AlreadyExists = "alreadyExists";

    /// <summary>The run has ended.</summary>
    public const string RunEnded = "runEnded";

    /// <summary>It was kept for its time, and removed.</summary>
    public const string Gone = "gone";

    /// <summary>The project has faults: <see cref="MaitentoException.Diagnostics"/> lists them.</summary>
    public const string DeployFailed = "deployFailed";

    /// <summary>The server is full: <see cref="MaitentoException.RetryAfter"/> says when to try again.</summary>
    public const string CapacityExceeded = "capacityExceeded";

    /// <summary>Too many requests: <see cref="MaitentoException.RetryAfter"/> says when to try again.</summary>
    public const string RateLimited = "rateLimited";

    /// <summary>It does not fit.</summary>
    public const string TooLarge = "tooLarge";

    /// <summary>The server, or what stands before it, is not ready.</summary>
    public const string Unavailable = "unavailable";

    /// <summary>No server answers at the address.</summary>
    public const string Unreachable = "unreachable";

    /// <summary>It is not known whether the request was carried out: look before you repeat it.</summary>
    public const string OutcomeUnknown = "outcomeUnknown";

    /// <summary>What answers at the address is not a Maitento server.</summary>
    public const string NotMaitento = "notMaitento";

    /// <summary>It did not come to pass within the time that the caller gave.</summary>
    public const string Timeout = "timeout";

    internal static string Of(int status) => status switch
    {
        401 => Unauthenticated,
        403 => Forbidden,
        404 => NotFound,
        409 => Conflict,
        410 => Gone,
        413 => TooLarge,
        429 => RateLimited,
        502 or 503 or 504 => Unavailable,
        507 => "diskFull",
        >= 500 => Internal,
        _ => BadRequest,
    };
}
