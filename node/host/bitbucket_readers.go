package host

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Readers returns the people with a grant of their own on the repository. Readers through a project
// or group are not included.
func (b *bitbucketServer) Readers(ctx context.Context, external, path string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindBitbucket, b.web)
	if !ok {
		return nil, errForeignID
	}

	// The list is by path. The id shows whether the path is still the same repository.
	key, slug, _ := strings.Cut(path, "/")
	var now serverRepo
	if _, err := b.get(ctx, b.at(nil, "projects", key, "repos", slug), &now); err != nil {
		return nil, err
	}

	if now.ID.String() != id {
		return nil, errOtherRepo(path)
	}

	found := people{}
	first := b.at(url.Values{"limit": {"1000"}}, "projects", key, "repos", slug, "permissions", "users")
	err := serverPages(ctx, b.client, first, func(v *struct {
		User struct {
			ID     int64 `json:"id"`
			Active bool  `json:"active"`
		} `json:"user"`
	}) error {
		if v.User.Active {
			found.add(v.User.ID)
		}
		return nil
	})
	return found.sorted(), err
}

// Readers returns the people with a grant of their own on the repository. Readers through a
// project, a group or the workspace are not included.
func (b *bitbucketCloud) Readers(ctx context.Context, external, _ string) ([]string, error) {
	place, ok := hostIDOf(external, config.KindBitbucket, b.web)
	workspace, uuid, whole := strings.Cut(place, "/")
	if !ok || !whole {
		return nil, errForeignID
	}

	found := people{}
	first := b.at(url.Values{"pagelen": {"100"}}, "repositories", workspace, uuid, "permissions-config", "users")
	err := cloudPages(ctx, b.client, first, func(v *struct {
		Permission string `json:"permission"`
		User       struct {
			UUID string `json:"uuid"`
		} `json:"user"`
	}) error {
		if v.User.UUID == "" {
			return refusal(InvalidResponse, http.StatusOK, "%s lists a reader without an id", b.product)
		}

		// The list contains people without permission, too.
		if v.Permission != "none" && v.Permission != "" {
			found[v.User.UUID] = true
		}
		return nil
	})
	return found.sorted(), err
}
