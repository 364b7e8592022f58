package search

import (
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/shard/query"
)

// revAtom returns the condition for a revision. HEAD and the branch that it points to are one: if
// that branch is indexed only as HEAD, HEAD is searched. If a branch and a tag have the same name,
// the tag is searched.
func revAtom(visible *account.Repos, rev string) query.Q {
	var atom query.Q = &query.Rev{Pattern: rev}
	if rev == "HEAD" {
		return atom
	}

	// Repositories differ in what the name means. heads have the branch only as HEAD, without its
	// own name. both have a tag and a branch of that name.
	tag, branch := "refs/tags/"+rev, "refs/heads/"+rev
	both := roaring.New()
	heads := visible.Where(func(repo *catalog.Repo) bool {
		name := nameOfRevision(repo, rev)
		if name == tag && nameOfRevision(repo, branch) == branch {
			both.Add(repo.ID)
		}
		return name == "HEAD" && repo.Indexed()
	})

	if !both.IsEmpty() {
		atom = &query.Or{Subs: []query.Q{
			&query.And{Subs: []query.Q{atom, &query.Repos{Set: roaring.AndNot(visible.Set, both)}}},
			&query.And{Subs: []query.Q{&query.Rev{Pattern: tag}, &query.Repos{Set: both}}},
		}}
	}
	if !heads.IsEmpty() {
		ofHeads := &query.And{Subs: []query.Q{&query.Rev{Pattern: "HEAD"}, &query.Repos{Set: heads}}}
		atom = &query.Or{Subs: []query.Q{atom, ofHeads}}
	}
	return atom
}

// nameOfRevision returns the name under which a repository has a ref indexed; "" if it has not. A
// tag goes before a branch of the same name, as in git.
func nameOfRevision(repo *catalog.Repo, ref string) string {
	for _, name := range []string{ref, "refs/tags/" + ref, "refs/heads/" + ref} {
		for _, r := range repo.Revisions {
			if r.Name == name || r.Commit == ref {
				return r.Name
			}
		}
	}

	// The copy has no default branch, so the recursion ends.
	branch := strings.TrimPrefix(ref, "refs/heads/")
	if branch == repo.DefaultBranch && branch != "" {
		return nameOfRevision(&catalog.Repo{Revisions: repo.Revisions}, "HEAD")
	}
	return ""
}

// hasRevision reports whether the index has a revision that rev: would select.
func hasRevision(repo *catalog.Repo, rev string) bool {
	head := ""
	for _, r := range repo.Revisions {
		if r.Name == "HEAD" {
			head = r.Commit
		}
	}

	// The index has the default branch as HEAD.
	if rev == repo.DefaultBranch && head != "" {
		return true
	}

	matches := (&query.Rev{Pattern: rev}).Matcher()
	return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool {
		isHead := head != "" && r.Commit == head
		return matches(r.Name, r.Commit, isHead)
	})
}

// CommitOf returns the commit of an indexed revision; "" if there is none.
func CommitOf(visible *account.Repos, repository, rev string) string {
	repo, err := visible.ByName(repository)
	if err != nil {
		return ""
	}

	// People write a part of the name, but the catalog has the whole name.
	name := nameOfRevision(repo, rev)
	for _, r := range repo.Revisions {
		if r.Name == name {
			return r.Commit
		}
	}
	return ""
}
