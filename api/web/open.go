package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
)

// open redirects an editor to the page of a line. In the address, remote is git's address of the
// repository, and path the file; line and commit are optional. It ignores an unknown commit, which may
// not be pushed yet.
func (p *reading) open(ctx context.Context, v *layout.Visit) error {
	repo, err := p.repoOfRemote(ctx, v, v.Query.Get("remote"))
	if err != nil {
		return err
	}

	rev := v.Query.Get("commit")
	if rev != "" {
		_, err := p.reader.Commit(ctx, v.Viewer, browse.CommitRequest{Repo: repo, Ref: rev})
		if errors.Is(err, call.ErrRef) {
			rev = ""
		} else if err != nil {
			return err
		}
	}

	path, kind := strings.Trim(v.Query.Get("path"), "/"), "blob"
	if path == "" {
		kind = "tree"
	}
	to := address(repo, rev, kind, path)
	if line, err := strconv.Atoi(v.Query.Get("line")); err == nil && line > 0 && path != "" {
		to = lineOf(to, path, line)
	}
	return v.Redirect(http.StatusSeeOther, to)
}

// repoOfRemote returns the name of the repository for a git remote. The name is the remote's host and
// path, or the longest end of these that names a repository.
func (p *reading) repoOfRemote(ctx context.Context, v *layout.Visit, remote string) (string, error) {
	name := remoteName(remote)
	if name == "" {
		return "", call.Fail(call.ErrInvalid, "remote is the address of the repository, as git remote get-url origin prints it.")
	}
	for rest := name; rest != ""; {
		found, err := p.reader.Repo(ctx, v.Viewer, rest)
		if err == nil {
			return found.Name, nil
		}
		if !errors.Is(err, call.ErrRepoNotFound) {
			return "", err
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	return "", call.Fail(call.ErrRepoNotFound, "No repository here is called %s. See /repos for those that you may see.", name)
}

// remoteName returns the host and path of a remote, the form of repository names.
//
//	git@github.com:acme/app.git, ssh://git@github.com:22/acme/app, https://me@github.com/acme/app/  ->  github.com/acme/app
func remoteName(remote string) string {
	_, rest, isURL := strings.Cut(remote, "://")
	if !isURL {
		rest = remote
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	if name, after, ok := strings.Cut(host, ":"); ok {
		host = name
		// After the colon comes the path, or in a URL the port.
		if !isURL {
			path = after + "/" + path
		}
	}
	return strings.Trim(strings.TrimSuffix(strings.Trim(host+"/"+path, "/"), ".git"), "/")
}
