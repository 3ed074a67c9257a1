// SPDX-License-Identifier: Apache-2.0
using Maitento.Sdk.Http;
using Maitento.Sdk.Json;

namespace Maitento.Sdk;

/// <summary>Base images that capsules run on. They are made with <c>mt-image build NAME</c> on the server.</summary>
public sealed class ImagesClient
{
    private readonly Transport _transport;

    internal ImagesClient(Transport transport)
    {
        _transport = transport;
    }

    /// <summary>The images of the server.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>All of them.</returns>
    [Operation("images.list", "listImages")]
    public Task<IReadOnlyList<Image>> ListAsync(CancellationToken cancellationToken = default) =>
        _transport.PagesAsync(new ApiPath("images"), SdkJson.Default.ImagePage, cancellationToken);

    /// <summary>Removes layers of packages that no run uses; for administrators. A later start installs again.</summary>
    /// <param name="cancellationToken">Ends the call.</param>
    /// <returns>What was removed.</returns>
    [Operation("images.prune", "pruneImages")]
    public Task<ImagesPruned> PruneAsync(CancellationToken cancellationToken = default) =>
        _transport.JsonAsync(ApiRequest.Act(new ApiPath("images", "prune")), SdkJson.Default.ImagesPruned, cancellationToken);
}
