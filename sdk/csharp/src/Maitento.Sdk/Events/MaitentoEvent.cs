// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>
/// What an event stream tells: a <see cref="ChangeEvent"/>, and where output was asked for an <see cref="OutputEvent"/>, a
/// <see cref="ConsoleEvent"/> or a <see cref="TextEvent"/>.
/// </summary>
public abstract class MaitentoEvent : Record;

/// <summary>Something was made, changed, removed, started, or ended.</summary>
[Schema("Event")]
public sealed class ChangeEvent : MaitentoEvent
{
    /// <summary>Of the event: later ones have higher numbers.</summary>
    public long Number { get; set; }

    /// <summary>When.</summary>
    public DateTimeOffset Date { get; set; }

    /// <summary>
    /// <c>capsuleRun</c>, <c>command</c>, <c>appRun</c>, <c>interactionRun</c>, <c>capsule</c>, <c>app</c>, <c>agent</c>, <c>interaction</c>,
    /// <c>json</c>, <c>prompt</c>, <c>namespace</c>, <c>vfs</c>, <c>secret</c>, <c>user</c>, <c>key</c> or <c>provider</c>.
    /// </summary>
    public string Kind { get; set; } = "";

    /// <summary><c>created</c>, <c>updated</c>, <c>deleted</c>, <c>started</c>, <c>ready</c>, <c>ended</c>, …</summary>
    public string Change { get; set; } = "";

    /// <summary>Of what it is about; of a provider its name.</summary>
    public string Id { get; set; } = "";

    /// <summary>Where that lives; null where it lives in none.</summary>
    public string? Namespace { get; set; }

    /// <summary>Of a command its run, of a run itself.</summary>
    public string? RunId { get; set; }

    /// <summary>Of a resource, a file system, a secret, …: its name; of a run: that of its capsule, app or interaction.</summary>
    public string? Name { get; set; }

    /// <summary>Of a run or a command: what it is at. Of an ended one that is final.</summary>
    public string? Status { get; set; }

    /// <summary>Of a run or a command that ended: why.</summary>
    public EndReason? EndReason { get; set; }

    /// <summary>Of a command that ended: its exit code.</summary>
    public int? ExitCode { get; set; }
}

/// <summary>A piece of what a command printed. After a reconnection pieces may come again: the offset tells.</summary>
[Schema("EventOutput")]
public sealed class OutputEvent : MaitentoEvent
{
    /// <summary>The run.</summary>
    public string RunId { get; set; } = "";

    /// <summary>The command.</summary>
    public string CommandId { get; set; } = "";

    /// <summary><c>standard</c> or <c>error</c>.</summary>
    public string Stream { get; set; } = "";

    /// <summary>Where in the stream it begins, in bytes.</summary>
    public long Offset { get; set; }

    /// <summary>How many bytes it is.</summary>
    public long Bytes { get; set; }

    /// <summary>Whole characters; bytes that are no UTF-8 are U+FFFD.</summary>
    public string Text { get; set; } = "";
}

/// <summary>A line that an app printed. After a reconnection lines may come again: the number tells.</summary>
[Schema("EventConsole")]
public sealed class ConsoleEvent : MaitentoEvent
{
    /// <summary>The run of the app.</summary>
    public string RunId { get; set; } = "";

    /// <summary>Of the line. Lines of console and log are counted together, from 1.</summary>
    public long Number { get; set; }

    /// <summary>Bytes of the line before this: a line of more than 8 KiB comes in pieces with the same number.</summary>
    public long From { get; set; }

    /// <summary>With its line end, where it has one.</summary>
    public string Text { get; set; } = "";

    /// <summary>When.</summary>
    public DateTimeOffset? Date { get; set; }
}

/// <summary>A piece of what a model says. After a reconnection pieces may come again: stream and place tell.</summary>
[Schema("EventText")]
public sealed class TextEvent : MaitentoEvent
{
    /// <summary>The run of the interaction.</summary>
    public string RunId { get; set; } = "";

    /// <summary>A model that is asked again begins another text, with another number.</summary>
    public long Stream { get; set; }

    /// <summary>Bytes of the text before this.</summary>
    public long From { get; set; }

    /// <summary>What it says.</summary>
    public string Text { get; set; } = "";
}

/// <summary>Events are missing here: they were not read in time, or the server did not keep them any more. Look for yourself what is so now.</summary>
public sealed class GapEvent : MaitentoEvent
{
    /// <summary>Why, in words.</summary>
    public string Reason { get; set; } = "";
}

/// <summary>The first frame of a stream.</summary>
[Schema("EventHello")]
internal sealed record HelloFrame(long After, int HeartbeatSeconds);

/// <summary>The last frame of a stream.</summary>
[Schema("EventEnd")]
internal sealed record EndFrame(string Code, long After, string Sentence);
