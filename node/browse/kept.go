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

// Files that an index keeps by name only are large, and every search of their
// repository looks at the same ones. To unpack them costs fifty times as much as to
// look through them. So a node remembers of them, in the memory that is given here
// and no more,
const (
	textBytes   = 48 << 20 // texts, for patterns that may be in them
	sketchBytes = 32 << 20 // sketches of texts, 128 KiB each at most: most patterns need no more
	placeBytes  = 4 << 20  // which blob a commit has at a path
)

// keptBytes is the size of the largest of these files that is looked at.
const keptBytes = 16 << 20

// keptFiles is what a node remembers of such files. A commit and a blob never change,
// so it is never out of date. It is asked by repository, and after the look at whether
// the viewer may see that: a tree may name a blob that only another repository has.
// It is safe for concurrent use.
type keptFiles struct {
	places   *lru.Cache[keptPlace, git.Entry]
	sketches *lru.Cache[keptBlob, *trigram.Sketch]
	texts    *lru.Cache[keptBlob, []byte]

	// How files were looked at: by a sketch alone, in a remembered text, in the mirror.
	sketched, remembered, read atomic.Int64
}

// keptPlace is a path in a commit.
type keptPlace struct {
	repo         catalog.RepoID
	commit, path string
}

// keptBlob is a blob of a repository.
type keptBlob struct {
	repo catalog.RepoID
	oid  string
}

func newKeptFiles() *keptFiles {
	return &keptFiles{
		places:   lru.New[keptPlace, git.Entry](placeBytes),
		sketches: lru.New[keptBlob, *trigram.Sketch](sketchBytes),
		texts:    lru.New[keptBlob, []byte](textBytes),
	}
}

// KeptFiles tells how files that are kept by name only were looked at since this node
// started, and what it remembers of them.
type KeptFiles struct {
	Sketched   int64 // files that a sketch ruled out
	Remembered int64 // files whose text was remembered
	Read       int64 // files that were read in a mirror

	Bytes int64 // of memory
}

// KeptFiles counts what this node did for any search.
func (b *Browser) KeptFiles() KeptFiles { return b.kept.count() }

func (k *keptFiles) count() KeptFiles {
	return KeptFiles{
		Sketched:   k.sketched.Load(),
		Remembered: k.remembered.Load(),
		Read:       k.read.Load(),
		Bytes:      k.places.Size() + k.sketches.Size() + k.texts.Size(),
	}
}

// namedFiles is the files that a commit has at some paths, with their sizes, and the
// paths at which it has nothing to search.
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

	// The sizes of all that are new, in one go.
	if !slices.ContainsFunc(files, func(e git.Entry) bool { return e.Size < 0 }) {
		return files, absent, nil
	}
	if files, err = s.mirror.Sized(ctx, files); err != nil {
		return nil, nil, err
	}
	for _, e := range files {
		if e.Size >= 0 {
			e.Path = strings.Clone(e.Path) // the request is not remembered with it
			s.kept.places.Put(keptPlace{s.repo.ID, commit, e.Path}, e, int64(len(commit)+2*len(e.Path)+lru.Cost))
		}
	}
	return files, absent, nil
}

// scanNamed looks for lines in files that are named, whatever they are.
func (s *site) scanNamed(ctx context.Context, f *finder, files []git.Entry, pattern string) error {
	re, err := syntax.Parse(pattern, query.RegexpFlags)
	if err != nil {
		return fmt.Errorf("read pattern: %w", err)
	}

	r := &blobReader{ctx: ctx, mirror: s.mirror}
	defer r.close()
	return s.kept.scan(f, s.repo.ID, files, trigram.Ask(re), r.read)
}

// scan looks through files of a repository; read gives the text of a blob. question is
// that of the expression of f.
func (k *keptFiles) scan(f *finder, repo catalog.RepoID, files []git.Entry, question *trigram.Question, read func(oid string) ([]byte, error)) error {
	for _, e := range files {
		if e.Size > keptBytes {
			continue
		}

		// Where its sketch knows that there is no match, the file has been looked at.
		key := keptBlob{repo, e.OID}
		if k.rulesOut(key, question) {
			if !f.begin(e.Path) {
				break
			}
			continue
		}

		text, err := k.text(key, read)
		if err != nil {
			return fmt.Errorf("read %q: %w", e.Path, err)
		}
		if !f.visit(e, text) {
			break
		}
	}
	return nil
}

// rulesOut reports whether a blob is known to have no match.
func (k *keptFiles) rulesOut(key keptBlob, question *trigram.Question) bool {
	sketch, ok := k.sketches.Get(key)
	if !ok || question.MayMatch(sketch) {
		return false
	}
	k.sketched.Add(1)
	return true
}

// text gives the text of a blob, which must not be changed: the remembered one, else
// what read gives.
func (k *keptFiles) text(key keptBlob, read func(oid string) ([]byte, error)) ([]byte, error) {
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

// blobReader reads blobs of a mirror one by one. The packs are opened at the first.
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
