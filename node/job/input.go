package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The key of an input is three hashes, <options>.<globs>.<revisions>: equal
// keys give equal answers. The first two, which need no mirror, are what is
// wanted of a repository, so that a changed setting is seen without a fetch.
//
//	options    of every repository: bounds, patterns, the tagger, versions of files    other bytes
//	globs      of its connections: branches and tags                                   which revisions
//	revisions  names and commits                                                       what they are now
//
// Equal options and revisions under other globs give the same shards.

// indexFormat changes when the same input would give other shards of the same versions.
const indexFormat = "3"

// wantedKey is the key of what is wanted of a repository.
func wantedKey(options string, view *catalog.View, repo *catalog.Repo) string {
	branches, tags := globs(view, repo)
	return options + "." + hash(strings.Join(branches, "\x00"), strings.Join(tags, "\x00"))
}

// wantedKeys makes the keys of what is wanted of many repositories: those of the
// same connections have the same.
type wantedKeys struct {
	options string
	view    *catalog.View
	known   map[string]string // by the names of the connections
}

func (w *wantedKeys) of(repo *catalog.Repo) string {
	// The globs of its connections alone make the key, so repositories share it.
	names := ""
	for i, link := range repo.Connections {
		if i > 0 {
			names += "\x00"
		}
		names += link.Name
	}

	key, ok := w.known[names]

	// Connections are few, and repositories many.
	if !ok {
		key = wantedKey(w.options, w.view, repo)
		if w.known == nil {
			w.known = map[string]string{}
		}
		w.known[names] = key
	}
	return key
}

// inputKey is the key of the revisions of a repository.
func inputKey(wanted string, revs []catalog.Revision) string {
	parts := make([]string, 0, 2*len(revs))
	for _, rev := range revs {
		parts = append(parts, rev.Name, rev.Commit)
	}
	return wanted + "." + hash(parts...)
}

// wantedOf is what was wanted when a key was made.
func wantedOf(key string) string {
	return key[:max(strings.LastIndexByte(key, '.'), 0)]
}

// optionsOf is the options that a key was made with.
func optionsOf(key string) string {
	options, _, _ := strings.Cut(key, ".")
	return options
}

// sameBuild reports whether two inputs give the same shards.
func sameBuild(a, b string) bool {
	return optionsOf(a) == optionsOf(b) && a[strings.LastIndexByte(a, '.')+1:] == b[strings.LastIndexByte(b, '.')+1:]
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
