// SPDX-License-Identifier: Apache-2.0
using System.Text;
using Maitento.Sdk.Json;

namespace Maitento.Sdk.Resources;

/// <summary>The files of a project, as a deploy sends them: the same rules as those of mt.</summary>
internal static class Project
{
    private const int FileMax = 8 << 20;
    private const int ProjectMax = 64 << 20;

    private static readonly string[] Kinds = ["agents", "apps", "capsules", "connectors", "interactions", "json", "prompts", "tools"];
    private static readonly string[] Endings = [".mtr", ".mtc", ".json", ".md"];
    private static readonly UTF8Encoding Strict = new(false, throwOnInvalidBytes: true);

    internal static async Task<IReadOnlyList<ProjectFile>> ReadAsync(string folder, CancellationToken cancellation)
    {
        if (!Directory.Exists(folder))
            throw new MaitentoException($"'{folder}' is no folder: deploy takes the folder of a project", ErrorCode.NotFound);
        var kinds = Kinds.Where(kind => IsRealFolder(Path.Combine(folder, kind))).ToList();
        if (kinds.Count == 0)
            throw NoProject(folder);
        var files = new List<ProjectFile>();
        long size = 0;
        foreach (var kind in kinds)
        {
            foreach (var (path, file) in Walk(new DirectoryInfo(Path.Combine(folder, kind)), kind))
            {
                var content = await ContentAsync(file, cancellation).ConfigureAwait(false);
                size += content.Length;
                if (size > ProjectMax)
                    throw new MaitentoException($"the project is larger than {ProjectMax >> 20} MiB", ErrorCode.TooLarge);
                files.Add(Describe(path, content));
            }
        }
        return files;
    }

    private static bool IsRealFolder(string path)
    {
        var folder = new DirectoryInfo(path);
        return folder.Exists && folder.LinkTarget is null;
    }

    private static MaitentoException NoProject(string folder)
    {
        var inner = Path.Combine(folder, "maitento");
        var why = Kinds.Any(kind => Directory.Exists(Path.Combine(inner, kind)))
            ? $"did you mean '{inner}'?" : "it has none of agents, apps, capsules, interactions, json, prompts";
        return new MaitentoException($"'{folder}' is no project folder: {why}", ErrorCode.BadRequest);
    }

    private static IEnumerable<(string Path, FileInfo File)> Walk(DirectoryInfo folder, string prefix)
    {
        var entries = folder.GetFileSystemInfos();
        Array.Sort(entries, (a, b) => string.CompareOrdinal(a.Name, b.Name));
        foreach (var entry in entries)
        {
            if (entry.Name.StartsWith('.') || entry.Name.EndsWith('~') || entry.LinkTarget is not null)
                continue;
            var path = $"{prefix}/{entry.Name}";
            if (entry is DirectoryInfo inner)
            {
                foreach (var found in Walk(inner, path))
                    yield return found;
            }
            else if (entry is FileInfo file && Endings.Contains(file.Extension))
            {
                yield return (path, file);
            }
        }
    }

    private static async Task<byte[]> ContentAsync(FileInfo file, CancellationToken cancellation)
    {
        if (file.Length > FileMax)
            throw new MaitentoException($"{file.FullName} is larger than {FileMax >> 20} MiB", ErrorCode.TooLarge);
        try
        {
            return await File.ReadAllBytesAsync(file.FullName, cancellation).ConfigureAwait(false);
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new MaitentoException($"cannot read {file.FullName}: {error.Message}", ErrorCode.BadRequest, null, error);
        }
    }

    private static ProjectFile Describe(string path, byte[] content)
    {
        try
        {
            return new ProjectFile(path, Strict.GetString(content), null);
        }
        catch (DecoderFallbackException)
        {
            return new ProjectFile(path, null, Convert.ToBase64String(content));
        }
    }
}
