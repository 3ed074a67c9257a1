// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>What a command is at. It prints as the plain word; a word of a newer server is kept as it is.</summary>
[JsonConverter(typeof(WordConverter<CommandStatus>))]
public readonly struct CommandStatus : IEquatable<CommandStatus>, IWord<CommandStatus>
{
    private readonly string? _word;

    /// <summary>What that word means.</summary>
    /// <param name="word">As the API spells it.</param>
    public CommandStatus(string word) => _word = word;

    /// <summary>It waits for those before it, or for the start of its run.</summary>
    public static CommandStatus Queued { get; } = new("Queued");

    /// <summary>It runs.</summary>
    public static CommandStatus Running { get; } = new("Running");

    /// <summary>It ended with the exit code 0.</summary>
    public static CommandStatus Finished { get; } = new("Finished");

    /// <summary>It ended otherwise: the exit code and the end reason tell how.</summary>
    public static CommandStatus Error { get; } = new("Error");

    /// <summary>The run ended first.</summary>
    public static CommandStatus Aborted { get; } = new("Aborted");

    /// <summary>A text as a word.</summary>
    /// <param name="word">As the API spells it.</param>
    public static implicit operator CommandStatus(string word) => new(word);

    /// <summary>Whether two words are the same.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(CommandStatus left, CommandStatus right) => left.Equals(right);

    /// <summary>Whether two words differ.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(CommandStatus left, CommandStatus right) => !left.Equals(right);

    static CommandStatus IWord<CommandStatus>.Of(string word) => new(word);

    /// <summary>The word.</summary>
    /// <returns>As the API spells it.</returns>
    public override string ToString() => _word ?? "";

    /// <inheritdoc/>
    public bool Equals(CommandStatus other) => string.Equals(ToString(), other.ToString(), StringComparison.Ordinal);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is CommandStatus other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => StringComparer.Ordinal.GetHashCode(ToString());
}
