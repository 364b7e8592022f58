package browse

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Reader reads repositories for pages, routes and tools; *Browser implements it. Its methods are
// safe for concurrent use and check what the viewer may see.
type Reader interface {
	Files
	History

	Repos(context.Context, catalog.Viewer, ReposRequest) (*ReposResponse, error)
	Repo(ctx context.Context, v catalog.Viewer, name string) (*RepoInfo, error)
	VisibleConnections(context.Context, catalog.Viewer) ([]ConnectionInfo, error)
}

// Files reads the files of one repository at any of its commits.
type Files interface {
	Source(context.Context, catalog.Viewer, SourceRequest) (*SourceResponse, error)
	ReadFile(context.Context, catalog.Viewer, ReadFileRequest) (*ReadFileResponse, error)
	Tree(context.Context, catalog.Viewer, TreeRequest) (*TreeResponse, error)
	ListTree(context.Context, catalog.Viewer, ListTreeRequest) (*ListTreeResponse, error)
	Outline(context.Context, catalog.Viewer, OutlineRequest) (*OutlineResponse, error)
	Diff(context.Context, catalog.Viewer, DiffRequest) (*DiffResponse, error)
	Blame(context.Context, catalog.Viewer, BlameRequest) (*BlameResponse, error)
	LastSeen(context.Context, catalog.Viewer, LastSeenRequest) (*LastSeenResponse, error)
}

// History reads the history of one repository.
type History interface {
	Commits(context.Context, catalog.Viewer, CommitsRequest) (*CommitsResponse, error)
	Commit(context.Context, catalog.Viewer, CommitRequest) (*CommitInfo, error)
	Authors(context.Context, catalog.Viewer, AuthorsRequest) (*AuthorsResponse, error)
	Together(context.Context, catalog.Viewer, TogetherRequest) (*TogetherResponse, error)
	Branches(context.Context, catalog.Viewer, RefsRequest) (*RefsResponse, error)
	Tags(context.Context, catalog.Viewer, RefsRequest) (*RefsResponse, error)
	Ref(context.Context, catalog.Viewer, RefRequest) (*RefResponse, error)
	LastCommits(context.Context, catalog.Viewer, LastCommitsRequest) (*LastCommitsResponse, error)
	Trace(context.Context, catalog.Viewer, TraceRequest) (*TraceResponse, error)
}
