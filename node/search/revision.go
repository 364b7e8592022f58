package search

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/shard/query"
)

// revAtom is the atom of a revision. HEAD and the branch it points to are one:
// where that branch is indexed as HEAD only, HEAD is meant. Of a branch and a tag of one
// name the tag is.
func revAtom(seen *account.Repos, rev string) query.Q {
	var atom query.Q = &query.Rev{Pattern: rev}
	if rev == "HEAD" {
		return atom
	}

	// What the name means depends on what a repository has: heads have the branch as HEAD
	// only, without a name of its own, and both have a tag and a branch of that name.
	tag, branch := "refs/tags/"+rev, "refs/heads/"+rev
	both := roaring.New()
	heads := seen.Where(func(repo *catalog.Repo) bool {
		name := nameOfRevision(repo, rev)
		if name == tag && nameOfRevision(repo, branch) == branch {
			both.Add(repo.ID)
		}
		return name == "HEAD" && repo.Indexed()
	})

	if !both.IsEmpty() {
		atom = &query.Or{Subs: []query.Q{
			&query.And{Subs: []query.Q{atom, &query.Repos{Set: roaring.AndNot(seen.Set, both)}}},
			&query.And{Subs: []query.Q{&query.Rev{Pattern: tag}, &query.Repos{Set: both}}},
		}}
	}
	if !heads.IsEmpty() {
		ofHeads := &query.And{Subs: []query.Q{&query.Rev{Pattern: "HEAD"}, &query.Repos{Set: heads}}}
		atom = &query.Or{Subs: []query.Q{atom, ofHeads}}
	}
	return atom
}

// nameOfRevision is the name under which a repository has a ref indexed; ""
// when it has not. Of a branch and a tag of one name it is the tag, as for git.
func nameOfRevision(repo *catalog.Repo, ref string) string {
	for _, name := range []string{ref, "refs/tags/" + ref, "refs/heads/" + ref} {
		for _, r := range repo.Revisions {
			if r.Name == name || r.Commit == ref {
				return r.Name
			}
		}
	}

	// Without a default branch this looks for HEAD at most once.
	branch := strings.TrimPrefix(ref, "refs/heads/")
	if branch == repo.DefaultBranch && branch != "" {
		return nameOfRevision(&catalog.Repo{Revisions: repo.Revisions}, "HEAD")
	}
	return ""
}

// hasRevision reports whether the index has what rev: names, as a search of it
// decides that.
func hasRevision(repo *catalog.Repo, rev string) bool {
	head := ""
	for _, r := range repo.Revisions {
		if r.Name == "HEAD" {
			head = r.Commit
		}
	}

	// HEAD is what is indexed of the default branch.
	if rev == repo.DefaultBranch && head != "" {
		return true
	}

	matches := (&query.Rev{Pattern: rev}).Matcher()
	return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool {
		isHead := head != "" && r.Commit == head
		return matches(r.Name, r.Commit, isHead)
	})
}

// CommitOf is the commit of a revision that is indexed; "" for none.
func CommitOf(seen *account.Repos, repository, rev string) string {
	repo, err := seen.ByName(repository)
	if err != nil {
		return ""
	}

	// People write a part of the name, and the catalog has all of it.
	name := nameOfRevision(repo, rev)
	for _, r := range repo.Revisions {
		if r.Name == name {
			return r.Commit
		}
	}
	return ""
}
