// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>What a run of a capsule, an app or an interaction is at. It prints as the plain word; a word of a newer server is kept as it is.</summary>
[JsonConverter(typeof(WordConverter<RunStatus>))]
public readonly struct RunStatus : IEquatable<RunStatus>, IWord<RunStatus>
{
    private readonly string? _word;

    /// <summary>What that word means.</summary>
    /// <param name="word">As the API spells it.</param>
    public RunStatus(string word) => _word = word;

    /// <summary>A capsule that is not ready yet; it takes commands already.</summary>
    public static RunStatus Starting { get; } = new("Starting");

    /// <summary>It is ready, or under way.</summary>
    public static RunStatus Running { get; } = new("Running");

    /// <summary>It ended, and did what it was for or was stopped or out of time: see its end reason.</summary>
    public static RunStatus Finished { get; } = new("Finished");

    /// <summary>It failed: its failure details say why.</summary>
    public static RunStatus Error { get; } = new("Error");

    /// <summary>A text as a word.</summary>
    /// <param name="word">As the API spells it.</param>
    public static implicit operator RunStatus(string word) => new(word);

    /// <summary>Whether two words are the same.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(RunStatus left, RunStatus right) => left.Equals(right);

    /// <summary>Whether two words differ.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(RunStatus left, RunStatus right) => !left.Equals(right);

    static RunStatus IWord<RunStatus>.Of(string word) => new(word);

    /// <summary>The word.</summary>
    /// <returns>As the API spells it.</returns>
    public override string ToString() => _word ?? "";

    /// <inheritdoc/>
    public bool Equals(RunStatus other) => string.Equals(ToString(), other.ToString(), StringComparison.Ordinal);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is RunStatus other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => StringComparer.Ordinal.GetHashCode(ToString());
}
