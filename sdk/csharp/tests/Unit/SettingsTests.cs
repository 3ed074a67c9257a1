// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Http;
using Maitento.Sdk.Tests.Tools;

namespace Maitento.Sdk.Tests.Unit;

public sealed class SettingsTests
{
    private const string File = """{"api":{"url":"https://file.example","key":"mt_file"},"defaultNamespace":"of-file"}""";

    [Test]
    public async Task Each_member_comes_from_options_then_environment_then_file()
    {
        var all = await ReadAsync(File, new() { Url = "http://o", ApiKey = "mt_o", Namespace = "of-options" }, ("MAITENTO_URL", "http://e"));
        Check.Equal(new Settings("http://o", "the client's options", "mt_o", "of-options", "the client's options"), all);
        var mixed = await ReadAsync(File, new() { Namespace = "of-options" }, ("MAITENTO_API_KEY", "mt_e"), ("MAITENTO_NAMESPACE", "of-e"));
        Check.Equal(new Settings("https://file.example", Settings.Shown, "mt_e", "of-options", "the client's options"), mixed);
        var environment = await ReadAsync(File, new(), ("MAITENTO_URL", "http://e"), ("MAITENTO_NAMESPACE", "of-e"));
        Check.Equal(new Settings("http://e", "MAITENTO_URL", null, "of-e", "MAITENTO_NAMESPACE"), environment);
        Check.Equal(new Settings("https://file.example", Settings.Shown, "mt_file", "of-file", Settings.Shown), await ReadAsync(File, new()));
    }

    [Test]
    public async Task A_key_of_the_file_goes_to_the_address_of_the_file_only()
    {
        Check.Equal("mt_file", (await ReadAsync(File, new(), ("MAITENTO_URL", "https://file.example"))).ApiKey);
        Check.Equal(null, (await ReadAsync(File, new() { Url = "https://other.example" })).ApiKey);
    }

    [Test]
    public async Task Empty_is_as_good_as_not_given()
    {
        var settings = await ReadAsync("""{"api":{"url":""},"defaultNamespace":null}""", new() { Url = "" }, ("MAITENTO_URL", ""), ("MAITENTO_NAMESPACE", ""));
        Check.Equal(new Settings(Settings.DefaultUrl, "the default", null, null, "your default on the server"), settings);
        Check.Equal(Settings.DefaultUrl, (await ReadAsync(null, new())).Url);
    }

    [Test]
    public async Task A_file_that_is_wrong_is_named()
    {
        foreach (var (file, wanted) in new[] { ("{", "cannot read ~/.maitento/settings.json"), ("""{"api":{"key":5}}""", "api/key must be a text") })
        {
            var error = await Check.ThrowsAsync<MaitentoException>(() => ReadAsync(file, new()));
            Check.Equal(ErrorCode.BadRequest, error.Code);
            Check.Contains(wanted, error.Message);
        }
    }

    [Test]
    public Task An_address_that_is_none_is_refused_and_a_password_is_not_shown()
    {
        foreach (var url in new[] { "ftp://x", "http://x/path", "http://x:99999", "http://u:secret@x", "unix:relative", "x", "http://x\r\n" })
        {
            var error = Check.Throws<MaitentoException>(() => _ = new Address(url));
            Check.Equal(ErrorCode.BadRequest, error.Code);
            Check.That(!error.Message.Contains("secret", StringComparison.Ordinal));
        }
        foreach (var url in new[] { "http://x", "https://x.example:8443/", "http://[::1]:80", "unix:/run/x.sock" })
            _ = new Address(url);
        var key = Check.Throws<MaitentoException>(() => _ = new MaitentoClient(new() { Url = "http://x", ApiKey = "mt_secret\n" }));
        Check.That(!key.Message.Contains("secret", StringComparison.Ordinal));
        return Task.CompletedTask;
    }

    private static async Task<Settings> ReadAsync(string? file, MaitentoClientOptions options, params (string Name, string Value)[] environment)
    {
        var home = Directory.CreateTempSubdirectory("home-").FullName;
        try
        {
            Directory.CreateDirectory(Path.Combine(home, ".maitento"));
            if (file is not null)
                await System.IO.File.WriteAllTextAsync(Path.Combine(home, ".maitento", "settings.json"), file);
            var values = environment.ToDictionary(pair => pair.Name, pair => pair.Value);
            values["HOME"] = home;
            return Settings.Read(options, values.GetValueOrDefault);
        }
        finally
        {
            Directory.Delete(home, recursive: true);
        }
    }
}
