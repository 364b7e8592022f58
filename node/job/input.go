package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The key of an input has three hashes, <options>.<globs>.<revisions>. Equal keys give equal search
// results. The first two need no mirror. So a changed setting is noticed without a fetch.
//	options    of all repositories: limits, patterns, the tagger, file versions          other bytes
//	globs      of its connections: branches and tags                                    which revisions
//	revisions  names and commits                                                        their content
// Equal options and revisions give the same shards, even with different globs.

// indexFormat changes if the same input would give other shards of the same versions.
const indexFormat = "3"

// wantedKey returns the first two parts of the key that a repository should have.
func wantedKey(options string, view *catalog.View, repo *catalog.Repo) string {
	branches, tags := revisionGlobs(view, repo)
	return options + "." + hashParts(strings.Join(branches, "\x00"), strings.Join(tags, "\x00"))
}

// wantedKeys caches the wantedKey of many repositories: those with the same connections share it.
type wantedKeys struct {
	options string
	view    *catalog.View
	known   map[string]string // by the names of the connections
}

// keyOf returns the wantedKey of a repository, computed once for all with the same connections.
func (w *wantedKeys) keyOf(repo *catalog.Repo) string {
	names := ""
	for i, link := range repo.Connections {
		if i > 0 {
			names += "\x00"
		}
		names += link.Name
	}

	key, ok := w.known[names]
	if !ok {
		key = wantedKey(w.options, w.view, repo)
		if w.known == nil {
			w.known = map[string]string{}
		}
		w.known[names] = key
	}
	return key
}

// inputKey returns the whole key for the revisions of a repository.
func inputKey(wanted string, revs []catalog.Revision) string {
	parts := make([]string, 0, 2*len(revs))
	for _, rev := range revs {
		parts = append(parts, rev.Name, rev.Commit)
	}
	return wanted + "." + hashParts(parts...)
}

// wantedPart returns the first two parts of a key.
func wantedPart(key string) string {
	return key[:max(strings.LastIndexByte(key, '.'), 0)]
}

// optionsPart returns the first part of a key.
func optionsPart(key string) string {
	options, _, _ := strings.Cut(key, ".")
	return options
}

// sameBuild reports whether two inputs give the same shards.
func sameBuild(a, b string) bool {
	return optionsPart(a) == optionsPart(b) && a[strings.LastIndexByte(a, '.')+1:] == b[strings.LastIndexByte(b, '.')+1:]
}

// hashParts returns a hash of several strings. The length of each is hashed, too, so that no two
// lists share one.
func hashParts(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
