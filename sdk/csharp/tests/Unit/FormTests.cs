// SPDX-License-Identifier: Apache-2.0
using System.Text;
using System.Text.Json;
using Maitento.Sdk.Capsules;
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;
using Maitento.Sdk.Resources;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Unit;

/// <summary>How things are written: durations, paths, words, records, pauses, pieces of characters, projects.</summary>
public sealed class FormTests
{
    [Test]
    public Task Durations_are_read_and_written_as_the_server_has_them()
    {
        foreach (var (text, seconds) in new[] { ("00:10:00", 600), ("48:00:00", 172_800), ("0100:00:00", 360_000), ("1.02:03:04", 93_784) })
            Check.Equal(TimeSpan.FromSeconds(seconds), Durations.Parse(text));
        foreach (var text in new[] { "", "90", "00:60:00", "1:00:00", "-00:01:00", "00:00:00.5", "00:01" })
            Check.Equal(null, Durations.Parse(text));
        Check.Equal("00:00:01", Durations.Format(TimeSpan.FromSeconds(1)));
        Check.Equal("2.00:00:00", Durations.Format(TimeSpan.FromHours(48)));
        foreach (var wrong in new[] { TimeSpan.Zero, TimeSpan.FromSeconds(-1), TimeSpan.FromMilliseconds(1500) })
        {
            var error = Check.Throws<MaitentoException>(() => Durations.Format(wrong));
            Check.Equal((ErrorCode.BadField, "maxDuration"), (error.Code, error.Field));
        }
        return Task.CompletedTask;
    }

    [Test]
    public Task Parts_of_addresses_are_encoded()
    {
        Check.Equal("/v1/namespaces/%2E%2E/vfs/a%2Fb%20%3F%C3%A9", new ApiPath("namespaces", "..", "vfs", "a/b ?é").ToString());
        Check.Equal("/v1/x?a=1&c=true&d=%26%3D", new ApiPath("x").With("a", 1).With("b", (string?)null).With("c", true).With("e", false).With("d", "&=").ToString());
        Check.Throws<ArgumentException>(() => _ = new ApiPath("vfs", ""));
        return Task.CompletedTask;
    }

    [Test]
    public Task Paths_of_odd_names_lead_to_those_files_only()
    {
        Check.Equal("%2Fa%20b%2Fp%2541%2Fq%3Fx%3D1%23", new FilePath("/a b/p%41/q?x=1#").ForQuery());
        FilePath odd = new FileEntry { Path = "/é/%FFx%25", NameEscaped = true };
        Check.Equal("%2F%C3%A9%2F%FFx%25", odd.ForQuery());
        Check.Equal("/é/%FFx%25", odd.ForBody(escaped: true));
        Check.Equal("/100%25", new FilePath("/100%").ForBody(escaped: true));
        Check.Equal("/100%", new FilePath("/100%").ForBody(escaped: false));
        FilePath plain = new FileEntry { Path = "/100%", NameEscaped = false };
        Check.Equal(new FilePath("/100%"), plain);
        return Task.CompletedTask;
    }

    [Test]
    public Task Words_print_plain_and_those_of_newer_servers_are_kept()
    {
        Check.Equal("Finished", $"{RunStatus.Finished}");
        Check.That(new RunStatus("Finished") == RunStatus.Finished && RunStatus.Finished == "Finished" && RunStatus.Error != RunStatus.Finished);
        Check.Equal("", default(EndReason).ToString());
        var run = JsonSerializer.Deserialize("""{"id":"r","status":"Paused","endReason":"tired","maxDuration":"00:10:00","colour":"red","labels":{"a":"b"}}""", SdkJson.Default.CapsuleRun)!;
        Check.Equal("Paused", run.Status.ToString());
        Check.Equal("tired", run.EndReason.ToString());
        Check.That(!run.HasEnded);
        Check.Equal("red", run.OtherMembers!["colour"].GetString());
        Check.Equal("b", run.Labels["a"]);
        Check.Equal(0, run.LimitsReached.Count); // members that are not sent
        Check.Equal(null, run.DateReady);
        return Task.CompletedTask;
    }

    [Test]
    public Task Return_values_print_as_they_are()
    {
        foreach (var (json, wanted) in new[] { ("\"North, 546.80\"", "North, 546.80"), ("546.80", "546.80"), ("""{"a":1}""", """{"a":1}"""), ("null", "") })
        {
            var run = JsonSerializer.Deserialize($$"""{"returnValue":{{json}}}""", SdkJson.Default.AppRun)!;
            Check.Equal(wanted, $"{run.ReturnValue}");
        }
        return Task.CompletedTask;
    }

    [Test]
    public Task Pauses_grow_to_a_bound()
    {
        var first = TimeSpan.FromSeconds(0.2);
        var longest = TimeSpan.FromSeconds(5);
        Check.Same([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], Enumerable.Range(0, 7).Select(tries => Patience.Of(tries, first, longest).TotalSeconds));
        Check.Equal(5.0, Patience.Of(1000, first, longest).TotalSeconds);
        var patience = Patience.OfRequests(TimeSpan.FromSeconds(10));
        var told = new MaitentoException("x", ErrorCode.Unavailable, 503) { RetryAfter = TimeSpan.FromSeconds(3) };
        Check.Equal(3.0, patience.After(told, System.Diagnostics.Stopwatch.GetTimestamp()).TotalSeconds);
        var none = Patience.OfRequests(TimeSpan.Zero);
        var error = Check.Throws<MaitentoException>(() => none.After(told, System.Diagnostics.Stopwatch.GetTimestamp()));
        Check.Equal(ErrorCode.OutcomeUnknown, error.Code);
        return Task.CompletedTask;
    }

    [Test]
    public Task Bytes_are_cut_between_characters()
    {
        var text = "a€😀é"u8.ToArray();
        for (var length = 0; length <= text.Length; length++)
        {
            var piece = text.AsSpan(0, length);
            var whole = piece[..^Characters.Unfinished(piece)];
            Check.That(!Encoding.UTF8.GetString(whole).Contains('\uFFFD', StringComparison.Ordinal));
            Check.That(piece.Length - whole.Length <= 3);
        }
        Check.Equal(0, Characters.Unfinished([0x61, 0xFF])); // begins nothing
        Check.Equal(0, Characters.Unfinished([0x80, 0x80, 0x80, 0x80]));
        Check.Equal(0, Characters.Unfinished([0xE2, 0x28]));
        return Task.CompletedTask;
    }

    [Test]
    public async Task A_project_is_read_as_mt_reads_it()
    {
        var folder = Directory.CreateTempSubdirectory("project-").FullName;
        try
        {
            foreach (var path in new[]
            {
                "capsules/a.mtr", "capsules/.hidden.mtr", "capsules/old.mtr~", "capsules/notes.txt", "apps/x/x.mtc", "apps/.git/y.mtc",
                "interactions/one-shot/i.mtr", "other/z.mtr", "json/s.json", "top.md",
            })
            {
                Directory.CreateDirectory(Path.GetDirectoryName(Path.Combine(folder, path))!);
                await File.WriteAllTextAsync(Path.Combine(folder, path), path);
            }
            await File.WriteAllBytesAsync(Path.Combine(folder, "json/odd.json"), [0xFF, 0x0D, 0x0A]);
            File.CreateSymbolicLink(Path.Combine(folder, "capsules/link.mtr"), "/etc/hostname");
            Directory.CreateSymbolicLink(Path.Combine(folder, "prompts"), "/etc");
            var files = await Project.ReadAsync(folder, CancellationToken.None);
            Check.Same(["apps/x/x.mtc", "capsules/a.mtr", "interactions/one-shot/i.mtr", "json/odd.json", "json/s.json"], files.Select(file => file.Path));
            Check.Equal("capsules/a.mtr", files[1].Content);
            Check.Equal("/w0K", files[3].ContentBase64);
            await File.WriteAllBytesAsync(Path.Combine(folder, "json/big.json"), new byte[(8 << 20) + 1]);
            Check.Equal(ErrorCode.TooLarge, (await Check.ThrowsAsync<MaitentoException>(() => Project.ReadAsync(folder, CancellationToken.None))).Code);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Test]
    public async Task A_folder_that_is_no_project_is_told_with_the_one_that_is_meant()
    {
        var folder = Directory.CreateTempSubdirectory("project-").FullName;
        try
        {
            Directory.CreateDirectory(Path.Combine(folder, "maitento", "capsules"));
            var error = await Check.ThrowsAsync<MaitentoException>(() => Project.ReadAsync(folder, CancellationToken.None));
            Check.Contains($"did you mean '{folder}/maitento'?", error.Message);
            error = await Check.ThrowsAsync<MaitentoException>(() => Project.ReadAsync(folder + "/none", CancellationToken.None));
            Check.Equal(ErrorCode.NotFound, error.Code);
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }
}
