// SPDX-License-Identifier: Apache-2.0
using System.Text.Json.Serialization;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Why something ended. It prints as the plain word; a word of a newer server is kept as it is.</summary>
[JsonConverter(typeof(WordConverter<EndReason>))]
public readonly struct EndReason : IEquatable<EndReason>, IWord<EndReason>
{
    private readonly string? _word;

    /// <summary>What that word means.</summary>
    /// <param name="word">As the API spells it.</param>
    public EndReason(string word) => _word = word;

    /// <summary>Its program left by itself, with an exit code.</summary>
    public static EndReason Exited { get; } = new("exited");

    /// <summary>A signal killed it; <c>Signal</c> says which, the exit code is 128 and its number.</summary>
    public static EndReason Signaled { get; } = new("signaled");

    /// <summary>It was out of time; <c>LimitMs</c> is the limit.</summary>
    public static EndReason Timeout { get; } = new("timeout");

    /// <summary>It passed its limit of memory.</summary>
    public static EndReason OutOfMemory { get; } = new("outOfMemory");

    /// <summary>Somebody stopped it.</summary>
    public static EndReason Terminated { get; } = new("terminated");

    /// <summary>It could not be started.</summary>
    public static EndReason StartFailed { get; } = new("startFailed");

    /// <summary>It passed its limit of disk space.</summary>
    public static EndReason DiskFull { get; } = new("diskFull");

    /// <summary>The run ended before it did.</summary>
    public static EndReason RunEnded { get; } = new("runEnded");

    /// <summary>What watched it died.</summary>
    public static EndReason SupervisorLost { get; } = new("supervisorLost");

    /// <summary>The machine went down under it.</summary>
    public static EndReason NodeLost { get; } = new("nodeLost");

    /// <summary>What started it ended.</summary>
    public static EndReason ParentEnded { get; } = new("parentEnded");

    /// <summary>The app returned.</summary>
    public static EndReason Returned { get; } = new("returned");

    /// <summary>The app failed.</summary>
    public static EndReason Failed { get; } = new("failed");

    /// <summary>Calls of the app were nested too deep.</summary>
    public static EndReason TooDeep { get; } = new("tooDeep");

    /// <summary>The app made too many calls.</summary>
    public static EndReason CallLimit { get; } = new("callLimit");

    /// <summary>Somebody cancelled it.</summary>
    public static EndReason Cancelled { get; } = new("cancelled");

    /// <summary>The app did not repeat itself after a restart of the server.</summary>
    public static EndReason ReplayDiverged { get; } = new("replayDiverged");

    /// <summary>The model answered.</summary>
    public static EndReason Answered { get; } = new("answered");

    /// <summary>The answer of the model did not fit.</summary>
    public static EndReason WrongAnswer { get; } = new("wrongAnswer");

    /// <summary>The answer of the model was cut off.</summary>
    public static EndReason Cut { get; } = new("cut");

    /// <summary>The model refused.</summary>
    public static EndReason Refused { get; } = new("refused");

    /// <summary>The provider has no key.</summary>
    public static EndReason NoKey { get; } = new("noKey");

    /// <summary>The provider did not take the key.</summary>
    public static EndReason BadKey { get; } = new("badKey");

    /// <summary>The provider has no such model.</summary>
    public static EndReason NoModel { get; } = new("noModel");

    /// <summary>The provider was asked too often.</summary>
    public static EndReason RateLimited { get; } = new("rateLimited");

    /// <summary>The provider did not take the request.</summary>
    public static EndReason BadRequest { get; } = new("badRequest");

    /// <summary>The provider failed.</summary>
    public static EndReason ProviderFailed { get; } = new("providerFailed");

    /// <summary>The provider could not be reached.</summary>
    public static EndReason Unreachable { get; } = new("unreachable");

    /// <summary>The shell was closed by a request.</summary>
    public static EndReason Closed { get; } = new("closed");

    /// <summary>Nobody read what the shell printed.</summary>
    public static EndReason Abandoned { get; } = new("abandoned");

    /// <summary>A text as a word.</summary>
    /// <param name="word">As the API spells it.</param>
    public static implicit operator EndReason(string word) => new(word);

    /// <summary>Whether two words are the same.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(EndReason left, EndReason right) => left.Equals(right);

    /// <summary>Whether two words differ.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(EndReason left, EndReason right) => !left.Equals(right);

    static EndReason IWord<EndReason>.Of(string word) => new(word);

    /// <summary>The word.</summary>
    /// <returns>As the API spells it.</returns>
    public override string ToString() => _word ?? "";

    /// <inheritdoc/>
    public bool Equals(EndReason other) => string.Equals(ToString(), other.ToString(), StringComparison.Ordinal);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is EndReason other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => StringComparer.Ordinal.GetHashCode(ToString());
}
