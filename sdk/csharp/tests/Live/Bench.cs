// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Live;

/// <summary>A run that stays up, of a test's own.</summary>
internal sealed class Bench : IAsyncDisposable
{
    private Bench(MaitentoClient mt, string id)
    {
        Mt = mt;
        Id = id;
    }

    public MaitentoClient Mt { get; }

    public string Id { get; }

    public static async Task<Bench> StartAsync(TimeSpan? maxDuration = null, string? url = null, double silence = 45)
    {
        var mt = LiveServer.Client(await LiveServer.SharedAsync(), url, silence);
        return new Bench(mt, (await mt.CapsuleProcesses.StartAsync(null, "stay", new() { MaxDuration = maxDuration })).Id);
    }

    public Task<CapsuleCommand> RunAsync(string command, string[]? arguments = null, string? user = null) =>
        Mt.CapsuleProcesses.RunCommandAndWaitAsync(Id, new() { Command = command, Arguments = arguments, RunAsUser = user });

    public async ValueTask DisposeAsync()
    {
        await Mt.CapsuleProcesses.TerminateAsync(Id);
        await Mt.DisposeAsync();
    }
}
