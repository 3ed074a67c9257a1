// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>
/// The run ended before the command did: it was stopped, ran out of time, or its start failed. <see cref="Reason"/> says which;
/// <see cref="CapsuleRun.FailureDetails"/> of <see cref="Run"/> say more. Its <see cref="MaitentoException.Code"/> is <c>runEnded</c>.
/// </summary>
public sealed class CapsuleCommandAbortedException : MaitentoException
{
    /// <summary>An error without a reason.</summary>
    public CapsuleCommandAbortedException() : this("the run ended")
    {
    }

    /// <summary>An error with a reason.</summary>
    /// <param name="reason">Why the command was aborted.</param>
    public CapsuleCommandAbortedException(string reason) : this(reason, null, null)
    {
    }

    /// <summary>An error with a reason.</summary>
    /// <param name="reason">Why the command was aborted.</param>
    /// <param name="innerException">What caused it.</param>
    public CapsuleCommandAbortedException(string reason, Exception? innerException) : this(reason, null, null, innerException)
    {
    }

    /// <summary>An error with all that is known.</summary>
    /// <param name="reason">Why the command was aborted.</param>
    /// <param name="command">Its record.</param>
    /// <param name="run">The record of its run.</param>
    /// <param name="innerException">What caused it.</param>
    public CapsuleCommandAbortedException(string reason, CapsuleCommand? command, CapsuleRun? run, Exception? innerException = null)
        : base($"the command was aborted: {reason}", ErrorCode.RunEnded, 409, innerException)
    {
        Reason = reason;
        Command = command;
        Run = run;
    }

    /// <summary>Why, in words: whether the run was stopped, was out of time, or failed as it started.</summary>
    public string Reason { get; }

    /// <summary>The command's record; null where the run had ended before the command could be sent.</summary>
    public CapsuleCommand? Command { get; }

    /// <summary>The run as it ended; null where it could not be read any more.</summary>
    public CapsuleRun? Run { get; }
}
