package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// The bounds of the lists of files that a ranking chooses from.
const (
	rankedSome = 50   // files by which it is known how many have a word
	rankedList = 1000 // files of one word; a word with more is common
	rankedRare = 2    // rare words that are enough to choose by
)

// listWords finds which files have which words. A common word by itself says too
// little to choose by: it is looked for in the files of the rare ones, and how many
// files have it is estimated. Where there are not enough of these, the files that have
// all of the common ones are listed too.
//
//	congestion 409 files, cwnd 37, reset some 18,000  ->  all with congestion or cwnd, and which of them have reset
//	memory some 12,000, alloc some 16,000             ->  those with both
func (r *ranking) listWords() error {
	if err := r.listPaths(); err != nil {
		return err
	}

	var rare, common []int
	for i := range r.words {
		whole, err := r.listSome(i)
		switch {
		case err != nil:
			return err
		case !whole:
			common = append(common, i)
		case r.words[i].files > 0:
			rare = append(rare, i)
		}
	}

	if len(rare) > 0 {
		for _, i := range common {
			if err := r.listWithin(i, rare); err != nil {
				return err
			}
		}
	}
	if len(rare) < rankedRare && len(common) > 0 {
		return r.listTogether(common)
	}
	return nil
}

// listTogether lists the files that have all of some words, and where these are few,
// those that lack one.
func (r *ranking) listTogether(words []int) error {
	files, err := r.listAll(words)
	if err != nil || files >= rankedCandidates || len(words) < 3 {
		return err
	}

	for i := range words {
		if _, err := r.listAll(slices.Delete(slices.Clone(words), i, i+1)); err != nil {
			return err
		}
	}
	return nil
}

// listPaths takes the files whose paths have words. One expression for all words reads
// each path once.
func (r *ranking) listPaths() error {
	exprs := make([]string, len(r.words))
	for i := range r.words {
		exprs[i] = r.words[i].expr
	}

	anyWord := &query.Text{Pattern: strings.Join(exprs, "|"), Regexp: true, Field: query.Name}
	found, err := r.list(Lookup{files: 2 * rankedList, filesOnly: true}, anyWord)
	if err != nil {
		return err
	}

	defer found.close()
	r.total = found.documents()
	for at := range found.a.files {
		r.candidateOf(&found.a.files[at])
	}
	return nil
}

// listSome finds out how many files have a word in their text, and lists them if it
// is rare.
func (r *ranking) listSome(i int) (rare bool, err error) {
	found, err := r.list(Lookup{files: rankedList, matches: rankedSome, filesOnly: true}, r.inText(i))
	if err != nil {
		return false, err
	}

	// A search that stops early has decided a part of its candidates: as many of the
	// others are taken to have the word.
	stats, w := found.a.stats, &r.words[i]
	w.files = stats.Files
	if decided := stats.FilesConsidered - stats.FilesSkipped; decided > 0 {
		w.files = int(float64(w.files) * float64(stats.FilesConsidered) / float64(decided))
	}

	// Few enough to list all of them.
	if len(found.a.files) < w.files && w.files <= rankedList {
		found.close()
		if found, err = r.list(Lookup{files: rankedList, filesOnly: true}, r.inText(i)); err != nil {
			return false, err
		}
		w.files = found.a.stats.Files
	}

	defer found.close()

	if w.files > rankedList {
		return false, nil
	}
	r.take(found, i)
	return true, nil
}

// listAll lists the files that have all of some words in their text, those with the most
// and the best places first, and returns how many there are.
func (r *ranking) listAll(words []int) (files int, err error) {
	var atoms []query.Q
	for _, i := range words {
		atoms = append(atoms, r.inText(i))
	}

	found, err := r.list(Lookup{files: rankedList, listing: true}, atoms...)
	if err != nil {
		return 0, err
	}
	defer found.close()

	r.take(found, words...)
	return found.a.stats.Files, nil
}

// listWithin notes which of the files that have one of some words have another one,
// too.
func (r *ranking) listWithin(i int, words []int) error {
	found, err := r.list(Lookup{files: rankedList, filesOnly: true}, r.inText(i), r.anyInText(words))
	if err != nil {
		return err
	}
	defer found.close()

	r.take(found, i)
	return nil
}

// inText holds for files that have the word of that index in their text.
func (r *ranking) inText(i int) query.Q {
	return &query.Text{Pattern: r.words[i].expr, Regexp: true, Field: query.Content}
}

// anyInText holds for files that have one of some words in their text.
func (r *ranking) anyInText(words []int) query.Q {
	or := &query.Or{}
	for _, i := range words {
		or.Subs = append(or.Subs, r.inText(i))
	}
	return or
}

// list searches, and notes what the search lacks.
func (r *ranking) list(t Lookup, atoms ...query.Q) (*root, error) {
	found, err := r.search(t, atoms...)
	if err != nil {
		return nil, err
	}

	// Lists are long: that one ends does not matter.
	found.a.cut = false
	answer, err := found.respondWith(nil) // the files are read as they came
	if err != nil {
		found.close()
		return nil, err
	}

	// All lists together are the answer.
	if r.seen == nil {
		r.out.Coverage = answer.Coverage
	} else {
		r.out.Coverage = r.out.Coverage.And(answer.Coverage)
	}
	r.seen = found.q.sight
	return found, nil
}

// take notes of the files of a list that they have some words, and takes it that each
// stands in a line of its own and none is there more often than another.
func (r *ranking) take(found *root, words ...int) {
	for at := range found.a.files {
		f := &found.a.files[at]
		c := r.candidateOf(f)
		for _, i := range words {
			c.has |= 1 << i
			c.linesWith[i] = max(c.linesWith[i], float64(f.Matches)/float64(len(words)))
		}
	}
}

// candidateOf is the candidate of a file.
func (r *ranking) candidateOf(f *shard.File) *candidate {
	key := fileKey{f.RepoName, f.Path}
	c := r.files[key]
	if c == nil {
		c = &candidate{fileKey: key, language: f.Language}
		r.files[key] = c
		c.named(r.words, f.Path)
	}
	return c
}

// documents is how many there are in the repositories that a search is of. What
// others have in the same files does not count.
func (r *root) documents() (sum int) {
	for it := r.q.repos.Iterator(); it.HasNext(); {
		repo := r.q.sight.View.Repo(it.Next())
		if repo == nil {
			continue
		}
		for _, s := range repo.Shards {
			sum += int(s.Docs)
		}
	}
	return sum
}
