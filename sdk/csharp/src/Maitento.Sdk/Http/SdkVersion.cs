// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk.Http;

internal static class SdkVersion
{
    /// <summary>The version of this package, <c>26.10.0</c>.</summary>
    internal static string Text { get; } = typeof(SdkVersion).Assembly.GetName().Version?.ToString(3) ?? "0";
}
