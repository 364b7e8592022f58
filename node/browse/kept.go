package browse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp/syntax"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// Some files are indexed by name only, mostly large ones. Every grep in their repository reads
// the same files again, and unpacking a file costs fifty times as much as searching it. So a node
// remembers, within these bounds:
const (
	textBytes   = 48 << 20 // texts of files, for patterns that may be in them
	sketchBytes = 32 << 20 // sketches of texts, up to 128 KiB each; they rule out most patterns
	placeBytes  = 4 << 20  // the blob at a path in a commit
)

// keptBytes is the size of the largest file indexed by name only that a grep reads.
const keptBytes = 16 << 20

// blobCache is a cache of files that are indexed by name only. It never goes stale, because
// commits and blobs never change. Its keys contain the repository, and callers check first that
// the viewer may see that: a tree may name a blob that only another repository has. It is safe
// for concurrent use.
type blobCache struct {
	places   *lru.Cache[keptPlace, git.Entry]
	sketches *lru.Cache[blobKey, *trigram.Sketch]
	texts    *lru.Cache[blobKey, []byte]

	// Counts of files searched: ruled out by a sketch, in a cached text, read from the mirror.
	sketched, remembered, read atomic.Int64
}

// keptPlace is a path in a commit.
type keptPlace struct {
	repo         catalog.RepoID
	commit, path string
}

// blobKey is a blob of a repository.
type blobKey struct {
	repo catalog.RepoID
	oid  string
}

func newKeptFiles() *blobCache {
	return &blobCache{
		places:   lru.New[keptPlace, git.Entry](placeBytes),
		sketches: lru.New[blobKey, *trigram.Sketch](sketchBytes),
		texts:    lru.New[blobKey, []byte](textBytes),
	}
}

// KeptFiles counts searches of files that are indexed by name only, since this node started.
type KeptFiles struct {
	Sketched   int64 // files that a sketch ruled out
	Remembered int64 // files whose text was cached
	Read       int64 // files read from a mirror

	Bytes int64 // memory of the caches
}

// KeptFiles returns the counts of this node.
func (b *Browser) KeptFiles() KeptFiles { return b.kept.currentCounts() }

func (k *blobCache) currentCounts() KeptFiles {
	return KeptFiles{
		Sketched:   k.sketched.Load(),
		Remembered: k.remembered.Load(),
		Read:       k.read.Load(),
		Bytes:      k.places.Size() + k.sketches.Size() + k.texts.Size(),
	}
}

// namedFiles returns the files at the given paths of a commit with their sizes, and the paths
// without a file.
func (s *site) namedFiles(ctx context.Context, commit string, paths []string) (files []git.Entry, absent []string, err error) {
	for _, path := range paths {
		e, ok := s.kept.places.Get(keptPlace{s.repo.ID, commit, path})
		if !ok {
			e, err = s.mirror.Stat(ctx, commit, path)
		}

		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, git.ErrNoPath) {
			absent, err = append(absent, path), nil
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if e.Kind.IsBlob() {
			files = append(files, e)
		}
	}

	// Look up all unknown sizes at once.
	if !slices.ContainsFunc(files, func(e git.Entry) bool { return e.Size < 0 }) {
		return files, absent, nil
	}
	if files, err = s.mirror.Sized(ctx, files); err != nil {
		return nil, nil, err
	}
	for _, e := range files {
		if e.Size >= 0 {
			e.Path = strings.Clone(e.Path) // a copy, so that the cache does not keep the whole request
			s.kept.places.Put(keptPlace{s.repo.ID, commit, e.Path}, e, int64(len(commit)+2*len(e.Path)+lru.Cost))
		}
	}
	return files, absent, nil
}

// scanNamed searches the named files for a pattern, even large ones.
func (s *site) scanNamed(ctx context.Context, f *finder, files []git.Entry, pattern string) error {
	re, err := syntax.Parse(pattern, query.RegexpFlags)
	if err != nil {
		return fmt.Errorf("read pattern: %w", err)
	}

	r := &blobReader{ctx: ctx, mirror: s.mirror}
	defer r.close()
	return s.kept.scanFiles(f, s.repo.ID, files, trigram.Ask(re), r.read)
}

// scanFiles searches files of a repository with f. question has the trigrams of f's pattern; read returns the
// content of a blob.
func (k *blobCache) scanFiles(f *finder, repo catalog.RepoID, files []git.Entry, question *trigram.Question, read func(oid string) ([]byte, error)) error {
	for _, e := range files {
		if e.Size > keptBytes {
			continue
		}

		// A sketch that rules out a match is as good as reading the file.
		key := blobKey{repo, e.OID}
		if k.rulesOut(key, question) {
			if !f.beginFile(e.Path) {
				break
			}
			continue
		}

		text, err := k.blobText(key, read)
		if err != nil {
			return fmt.Errorf("read %q: %w", e.Path, err)
		}
		if !f.searchFile(e, text) {
			break
		}
	}
	return nil
}

// rulesOut reports whether the sketch of a blob excludes a match.
func (k *blobCache) rulesOut(key blobKey, question *trigram.Question) bool {
	sketch, ok := k.sketches.Get(key)
	if !ok || question.MayMatch(sketch) {
		return false
	}
	k.sketched.Add(1)
	return true
}

// blobText returns the content of a blob, from the cache or else by read. After a read it caches the
// content and its sketch, and counts either case. The caller must not change the content.
func (k *blobCache) blobText(key blobKey, read func(oid string) ([]byte, error)) ([]byte, error) {
	if text, ok := k.texts.Get(key); ok {
		k.remembered.Add(1)
		return text, nil
	}

	text, err := read(key.oid)
	if err != nil {
		return nil, err
	}
	k.read.Add(1)
	decoded, _ := charset.Decode(nil, text)
	sketch := trigram.NewSketch(decoded)
	k.sketches.Put(key, sketch, int64(sketch.Size()+lru.Cost))
	k.texts.Put(key, text, int64(cap(text)+lru.Cost))
	return text, nil
}

// blobReader reads blobs of a mirror one by one. It opens the packs at the first read.
type blobReader struct {
	ctx    context.Context
	mirror *git.Mirror
	blobs  *git.Blobs
}

func (r *blobReader) read(oid string) (text []byte, err error) {
	if r.blobs == nil {
		if r.blobs, err = r.mirror.Blobs(r.ctx, func(func(string) bool) {}); err != nil {
			return nil, err
		}
	}
	return r.blobs.Read(nil, oid)
}

func (r *blobReader) close() {
	if r.blobs != nil {
		r.blobs.Close()
	}
}
