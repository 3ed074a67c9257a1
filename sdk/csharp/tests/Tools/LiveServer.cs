// SPDX-License-Identifier: Apache-2.0
namespace Maitento.Sdk.Tests.Tools;

/// <summary>The server of the environment, and what tests need there.</summary>
internal static class LiveServer
{
    private static readonly Lazy<Task<string>> Bench = new(MakeBenchAsync);

    public static string Url => Environment.GetEnvironmentVariable("MAITENTO_URL")
        ?? throw new CheckException("MAITENTO_URL names no server: tools/with-server gives one");

    /// <summary>A name that no other test has.</summary>
    public static string NewName(string begin) => $"{begin}-{Guid.NewGuid().ToString("N")[..10]}";

    /// <summary>A client in a namespace; with another address it goes that way.</summary>
    public static MaitentoClient Client(string ns, string? url = null, double silence = 45) => new(new MaitentoClientOptions
    {
        Url = url ?? Url,
        ApiKey = Environment.GetEnvironmentVariable("MAITENTO_API_KEY"),
        Namespace = ns,
        Silence = TimeSpan.FromSeconds(silence),
    });

    /// <summary>A new namespace with the capsules of the tests and a file system "work".</summary>
    public static async Task<string> MakeBenchAsync()
    {
        var ns = NewName("cs");
        await using var mt = Client(ns);
        await mt.Namespaces.CreateAsync(ns);
        await mt.VirtualFileSystems.CreateAsync(ns, "work");
        await DeployAsync(mt, new()
        {
            ["capsules/stay.mtr"] = "maxDuration = \"00:20:00\"\nusers = [{ name = \"sandbox\" }]\nvfs = [{ vfs = @ref(\"work\") mountName = \"work\" }]\n",
            ["capsules/once.mtr"] = "autoTerminate = true\nvfs = [{ vfs = @ref(\"work\") mountName = \"work\" }]\n"
                + "startup = [{ command = \"echo ran >> /mnt/work/ran; sleep 3; exit $CODE\" }]\nenvironment = { CODE = \"0\" }\n",
            ["capsules/wrong.mtr"] = "startup = [{ command = \"sleep 1; echo why >&2; exit 9\" }]\n",
            ["apps/tell/tell.mtc"] = "string main(string who) { PrintLine(\"héllo \" + who); PrintLine(\"bye\"); return(\"told \" + who); }\n",
        });
        return ns;
    }

    /// <summary>The bench that tests share which change nothing of it.</summary>
    public static Task<string> SharedAsync() => Bench.Value;

    public static async Task<DeployResult> DeployAsync(MaitentoClient mt, Dictionary<string, string> files)
    {
        var folder = Directory.CreateTempSubdirectory("project-").FullName;
        try
        {
            foreach (var (path, content) in files)
            {
                Directory.CreateDirectory(Path.GetDirectoryName(Path.Combine(folder, path))!);
                await File.WriteAllTextAsync(Path.Combine(folder, path), content);
            }
            return await mt.DeployAsync(folder);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }
}
