package search

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// Limits of the lists from which a ranking chooses.
const (
	rankedSome = 50   // files after which the number of files with a word can be estimated
	rankedList = 1000 // files of one word; a word with more is common
	rankedRare = 2    // rare words that are enough to choose files by
)

// listWords finds which files have which words. A common word alone says too little. So it is
// searched only in the files of the rare words, and the number of its files is estimated. If there
// are too few rare words, the files with all common words are listed too.
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

// listTogether lists the files that have all of some words. If these are few, it also lists the
// files that lack one of the words.
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

// listPaths adds the files whose paths contain words. One expression for all words reads each path
// once.
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
		c := r.candidateOf(&found.a.files[at])
		c.scorePath(r.words, c.path)
	}
	return nil
}

// listSome estimates how many files have a word in their text, and lists them if the word is rare.
func (r *ranking) listSome(i int) (rare bool, err error) {
	found, err := r.list(Lookup{files: rankedList, matches: rankedSome, filesOnly: true}, r.inText(i))
	if err != nil {
		return false, err
	}

	// A search that stops early has decided only a part of its candidates. Assume that the rest has
	// the word as often.
	stats, w := found.a.stats, &r.words[i]
	w.files = stats.Files
	if decided := stats.FilesConsidered - stats.FilesSkipped; decided > 0 {
		w.files = int(float64(w.files) * float64(stats.FilesConsidered) / float64(decided))
	}

	// The word is rare enough to list all of its files.
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
	r.markWords(found, i)
	return true, nil
}

// listAll lists the files that have all of some words in their text, the best first, and returns
// how many there are.
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

	r.markWords(found, words...)
	return found.a.stats.Files, nil
}

// listWithin finds which files with one of some words also have word i.
func (r *ranking) listWithin(i int, words []int) error {
	found, err := r.list(Lookup{files: rankedList, filesOnly: true}, r.inText(i), r.anyInText(words))
	if err != nil {
		return err
	}
	defer found.close()

	r.markWords(found, i)
	return nil
}

// inText returns a condition: the text of a file has word i.
func (r *ranking) inText(i int) query.Q {
	return &query.Text{Pattern: r.words[i].expr, Regexp: true, Field: query.Content}
}

// anyInText returns a condition: the text of a file has one of some words.
func (r *ranking) anyInText(words []int) query.Q {
	or := &query.Or{}
	for _, i := range words {
		or.Subs = append(or.Subs, r.inText(i))
	}
	return or
}

// list runs one search of the ranking, and adds its gaps to the coverage of the whole answer.
func (r *ranking) list(t Lookup, atoms ...query.Q) (*root, error) {
	found, err := r.search(t, atoms...)
	if err != nil {
		return nil, err
	}

	// Lists have a limit on purpose, so reaching it is no gap.
	found.a.cut = false
	answer, err := found.respondWith(nil) // the files are used as they came
	if err != nil {
		found.close()
		return nil, err
	}

	// The answer covers what all lists cover.
	if r.visible == nil {
		r.out.Coverage = answer.Coverage
	} else {
		r.out.Coverage = r.out.Coverage.And(answer.Coverage)
	}
	r.visible = found.q.visible
	return found, nil
}

// markWords records that the files of a list have some words. It assumes that each match is on a line of
// its own and that all words occur equally often.
func (r *ranking) markWords(found *root, words ...int) {
	for at := range found.a.files {
		f := &found.a.files[at]
		c := r.candidateOf(f)
		for _, i := range words {
			c.has |= 1 << i
			c.matches[i] = max(c.matches[i], perUnit*float64(f.Units)/float64(len(words)))
		}
	}
}

// candidateOf returns the candidate for a file, and adds it if it is new.
func (r *ranking) candidateOf(f *shard.File) *candidate {
	key := fileKey{f.RepoName, f.Path}
	c := r.files[key]
	if c == nil {
		c = &candidate{fileKey: key, language: f.Language, oid: f.OID}
		r.files[key] = c
		c.factor = pathFactor(f.Path)
	}
	return c
}

// documents returns the number of documents in the repositories of a search. Documents of other
// repositories in the same files do not count.
func (r *root) documents() (sum int) {
	for it := r.q.repos.Iterator(); it.HasNext(); {
		repo := r.q.visible.View.Repo(it.Next())
		if repo == nil {
			continue
		}
		for _, s := range repo.Shards {
			sum += int(s.Docs)
		}
	}
	return sum
}
