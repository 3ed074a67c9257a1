// SPDX-License-Identifier: Apache-2.0
using System.Text;

namespace Maitento.Sdk;

/// <summary>Which of a command's streams.</summary>
public enum CommandStream
{
    /// <summary>What it prints.</summary>
    Standard,

    /// <summary>What it prints to its error output.</summary>
    Error,

    /// <summary>Both of them.</summary>
    Both,
}

/// <summary>A piece of what a command printed. It never begins or ends within a character.</summary>
/// <param name="Stream">Which stream it is of: <see cref="CommandStream.Standard"/> or <see cref="CommandStream.Error"/>.</param>
/// <param name="Offset">Where in the stream it begins, in bytes.</param>
/// <param name="Bytes">The bytes as they were printed.</param>
public sealed record CommandOutput(CommandStream Stream, long Offset, ReadOnlyMemory<byte> Bytes)
{
    /// <summary>The bytes as text; those that are no UTF-8 are U+FFFD.</summary>
    public string Text { get; } = Encoding.UTF8.GetString(Bytes.Span);
}
