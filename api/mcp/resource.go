package mcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paste"
)

// fileTemplate is the URI of a file in any revision. Repository and ref are percent-encoded,
// because they contain slashes.
const fileTemplate = "shoal://{repo}/{ref}/{+path}"

// linkTemplate is the address of a file's page. It matches every site, because a node may have several
// names.
const linkTemplate = "{+site}/browse/{+place}"

// maxResource limits the text of one resource, in bytes.
const maxResource = 1 << 20

func addResources(s *mcp.Server, f browse.Reader) {
	read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return readResource(ctx, f, req.Params.URI)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "file", Title: "File of a repository", URITemplate: fileTemplate,
		Description: "The text of a file. repo is the full repository name with %2F for its slashes, ref a branch, tag or commit (HEAD for the default branch), path the path from the root.",
	}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "link", Title: "File by the address of its page", URITemplate: linkTemplate,
		Description: "The text of a file, or the lines of it that the address names (#L10-L20).",
	}, read)
}

// fileOf returns the file that a resource URI names, with its lines if the URI is the address of a page
// with lines. ok is false if the URI names no file.
func fileOf(uri string) (a paste.Address, ok bool) {
	rest, found := strings.CutPrefix(uri, "shoal://")
	if !found {
		a, ok = paste.AddressOf(uri)
		return a, ok && a.Kind == paste.File && a.Rest != ""
	}
	// The path is all after the second slash: its slashes are not encoded.
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) != 3 {
		return a, false
	}

	for i := range parts {
		var err error
		if parts[i], err = url.PathUnescape(parts[i]); err != nil || parts[i] == "" {
			return a, false
		}
	}
	return paste.Address{Kind: paste.File, Repo: parts[0], Rev: parts[1], Rest: parts[2]}, true
}

// readResource reads the lines of a file that a URI names, page by page. After maxResource bytes it
// stops and says so in the text.
func readResource(ctx context.Context, f browse.Reader, uri string) (*mcp.ReadResourceResult, error) {
	at, ok := fileOf(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}

	last := math.MaxInt
	if at.Line > 0 {
		last = max(at.Line, at.End)
	}

	var text strings.Builder
	for offset := max(at.Line, 1); offset <= last; {
		// Each page checks permissions again.
		r, err := f.ReadFile(ctx, viewerOf(ctx), browse.ReadFileRequest{Repo: at.Repo, Path: at.Rest, Ref: at.Rev, Offset: offset, Limit: min(500, last-offset+1)})
		switch {
		case errors.Is(err, call.ErrRepoNotFound), errors.Is(err, call.ErrFileNotFound), errors.Is(err, call.ErrRef):
			return nil, mcp.ResourceNotFoundError(uri)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", uri, err)
		case r.Binary:
			return nil, errors.New("a binary file has no text to read")
		}

		for _, line := range r.Lines {
			text.WriteString(strings.ToValidUTF8(string(line), "\uFFFD"))
			text.WriteByte('\n')
		}

		offset = r.First + len(r.Lines)
		if offset > r.Total || len(r.Lines) == 0 {
			break
		}
		if text.Len() > maxResource {
			fmt.Fprintf(&text, "… lines %d-%d are left out\n", offset, r.Total)
			break
		}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text.String()}}}, nil
}

// completer suggests repository names, and branch names for a known repository.
func completer(f browse.Reader) func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	return func(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		arg := req.Params.Argument
		result := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}

		switch arg.Name {
		case "repo":
			r, err := f.Repos(ctx, viewerOf(ctx), browse.ReposRequest{Query: arg.Value, PerPage: 100})
			if err != nil {
				return result, nil // a failed completion suggests nothing
			}

			for i := range r.Repos {
				result.Completion.Values = append(result.Completion.Values, r.Repos[i].Name)
			}
			result.Completion.Total, result.Completion.HasMore = r.Total, r.Total > len(r.Repos)

		case "ref":
			if req.Params.Context == nil || req.Params.Context.Arguments["repo"] == "" {
				return result, nil
			}

			r, err := f.Branches(ctx, viewerOf(ctx), browse.RefsRequest{Repo: req.Params.Context.Arguments["repo"], Query: arg.Value, PerPage: 100})
			if err != nil {
				return result, nil
			}

			for _, b := range r.Refs {
				result.Completion.Values = append(result.Completion.Values, b.Name)
			}
			result.Completion.Total, result.Completion.HasMore = r.Total, r.Total > len(r.Refs)
		}
		return result, nil
	}
}
