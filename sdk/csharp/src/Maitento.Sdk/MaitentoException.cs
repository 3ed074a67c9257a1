// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A call failed. The message says what and why, and what one may do.</summary>
public class MaitentoException : Exception
{
    /// <summary>An error with the code <c>internal</c>.</summary>
    public MaitentoException()
    {
    }

    /// <summary>An error with the code <c>internal</c>.</summary>
    /// <param name="message">What happened.</param>
    public MaitentoException(string message) : base(message)
    {
    }

    /// <summary>An error with the code <c>internal</c>.</summary>
    /// <param name="message">What happened.</param>
    /// <param name="innerException">What caused it.</param>
    public MaitentoException(string message, Exception? innerException) : base(message, innerException)
    {
    }

    /// <summary>An error with a code of its own.</summary>
    /// <param name="message">What happened.</param>
    /// <param name="code">The stable name of its kind.</param>
    /// <param name="status">The HTTP status, where there was an answer.</param>
    /// <param name="innerException">What caused it.</param>
    public MaitentoException(string message, string code, int? status = null, Exception? innerException = null)
        : base(message, innerException)
    {
        Code = code;
        Status = status;
    }

    /// <summary>
    /// The stable name of the kind: <c>notFound</c>, <c>conflict</c>, <c>badField</c>, <c>capacityExceeded</c>, … as the server's
    /// reference of errors lists them. Of the client's own: <c>unreachable</c> (no server answers), <c>outcomeUnknown</c> (it is not
    /// known whether it was done), <c>notMaitento</c> (something else answers at the address), <c>badRequest</c> (wrong settings or
    /// arguments), <c>timeout</c> (a wait was longer than asked for).
    /// </summary>
    public string Code { get; internal init; } = ErrorCode.Internal;

    /// <summary>The HTTP status; null when no answer came.</summary>
    public int? Status { get; internal init; }

    /// <summary>The member or parameter at fault, for example <c>files[2].path</c>; null where there is none.</summary>
    public string? Field { get; internal init; }

    /// <summary>What one may do; null where the server said nothing.</summary>
    public string? Help { get; internal init; }

    /// <summary>After which time to try again, where the server said so (<c>capacityExceeded</c>, <c>rateLimited</c>).</summary>
    public TimeSpan? RetryAfter { get; internal init; }

    /// <summary>Faults with their places, of a deploy (<c>deployFailed</c>); else empty.</summary>
    public IReadOnlyList<Diagnostic> Diagnostics { get; internal init; } = [];

    /// <summary>The server's answer as it came, with members that this version of the SDK does not know; null when none came.</summary>
    public Problem? Problem { get; internal init; }

    /// <summary>Whether the request may have been carried out though no answer came.</summary>
    internal bool WasSent { get; init; }
}
