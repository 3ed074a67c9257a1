// SPDX-License-Identifier: Apache-2.0
using System.Text;

namespace Maitento.Sdk.Capsules;

/// <summary>Where bytes of UTF-8 may be cut.</summary>
internal static class Characters
{
    /// <summary>How many bytes at the end are the beginning of a character that may still go on: 0 to 3.</summary>
    internal static int Unfinished(ReadOnlySpan<byte> bytes)
    {
        for (var back = 1; back <= Math.Min(3, bytes.Length); back++)
        {
            var start = bytes[^back];
            if ((start & 0xC0) == 0x80)
                continue; // goes on with a character
            return start >= 0xC2 && Rune.DecodeFromUtf8(bytes[^back..], out _, out _) == System.Buffers.OperationStatus.NeedMoreData ? back : 0;
        }
        return 0;
    }
}
