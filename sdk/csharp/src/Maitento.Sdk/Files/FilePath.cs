// SPDX-License-Identifier: Apache-2.0
using System.Globalization;
using System.Text;

namespace Maitento.Sdk;

/// <summary>
/// A path of a file: a text, or a <see cref="FileEntry"/> of a list, whose name may be bytes that are no text. Both convert to it by
/// themselves.
/// </summary>
public readonly struct FilePath : IEquatable<FilePath>
{
    private readonly string? _path;

    /// <summary>A path as it is.</summary>
    /// <param name="path">The path.</param>
    public FilePath(string path) => _path = path;

    /// <summary>The path of what a list told.</summary>
    /// <param name="entry">An item of the list.</param>
    public FilePath(FileEntry entry)
    {
        ArgumentNullException.ThrowIfNull(entry);
        _path = entry.Path;
        IsEscaped = entry.NameEscaped;
    }

    /// <summary>Whether odd bytes and <c>%</c> are written as <c>%XX</c>, as in <see cref="FileEntry.NameEscaped"/>.</summary>
    public bool IsEscaped { get; }

    /// <summary>A text as a path.</summary>
    /// <param name="path">The path.</param>
    public static implicit operator FilePath(string path) => new(path);

    /// <summary>What a list told as a path.</summary>
    /// <param name="entry">An item of the list.</param>
    public static implicit operator FilePath(FileEntry entry) => new(entry);

    /// <summary>Whether two paths are the same.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(FilePath left, FilePath right) => left.Equals(right);

    /// <summary>Whether two paths differ.</summary>
    /// <param name="left">One.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(FilePath left, FilePath right) => !left.Equals(right);

    /// <summary>The path, as it was given.</summary>
    /// <returns>See <see cref="IsEscaped"/>.</returns>
    public override string ToString() => _path ?? "";

    /// <inheritdoc/>
    public bool Equals(FilePath other) => IsEscaped == other.IsEscaped && string.Equals(ToString(), other.ToString(), StringComparison.Ordinal);

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is FilePath other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => StringComparer.Ordinal.GetHashCode(ToString());

    /// <summary>For a query, where every byte that is not plain is percent-encoded.</summary>
    internal string ForQuery()
    {
        if (!IsEscaped)
            return Uri.EscapeDataString(ToString());
        var text = new StringBuilder();
        var path = ToString();
        for (var at = 0; at < path.Length;)
        {
            var mark = path.IndexOf('%', at);
            var end = mark < 0 ? path.Length : mark;
            text.Append(Uri.EscapeDataString(path[at..end]));
            at = end;
            if (at == path.Length)
                break;
            var isByte = at + 2 < path.Length && byte.TryParse(
                path.AsSpan(at + 1, 2), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out _);
            text.Append(isByte ? path.AsSpan(at, 3) : "%25"); // a byte, encoded already
            at += isByte ? 3 : 1;
        }
        return text.ToString();
    }

    /// <summary>For a body whose paths are all written as escaped ones, or none.</summary>
    internal string ForBody(bool escaped) => escaped && !IsEscaped ? ToString().Replace("%", "%25", StringComparison.Ordinal) : ToString();
}
