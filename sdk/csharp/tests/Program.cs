// SPDX-License-Identifier: Apache-2.0

// usage: Maitento.Sdk.Tests unit|live [PART OF A NAME...]
// unit needs nothing; live needs a server (MAITENTO_URL, MAITENTO_API_KEY): tools/with-server runs it with one. Prints TAP.
using Maitento.Sdk.Tests.Tools;

if (args is not ["unit" or "live", .. var parts])
{
    await Console.Error.WriteLineAsync("usage: Maitento.Sdk.Tests unit|live [PART OF A NAME...]");
    return 2;
}
return await Runner.RunAsync(args[0], parts) ? 0 : 1;
