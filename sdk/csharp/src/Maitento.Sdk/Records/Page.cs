// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk;

/// <summary>A part of a list.</summary>
[Schema("Page")]
internal sealed class Page<T>
{
    /// <summary>Its items.</summary>
    public IReadOnlyList<T> Items { get; set; } = [];

    /// <summary>Where the next page begins; null at the end.</summary>
    public string? Next { get; set; }
}
