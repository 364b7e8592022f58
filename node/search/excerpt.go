package search

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"github.com/shoalsearch/shoal/shard"
)

// Limits of the lines that an answer shows of a file.
const (
	rankedLines  = 2 // lines of the second file to the file at rankedTop; other files show one
	rankedTop    = 5
	rangesRead   = 24 // ranges that are read of a candidate, from its best lines
	windowLines  = 10
	longLine     = 400 // bytes; a program wrote such a line
	longLineRate = 0.25
	insideWord   = 0.3 // strength of a word inside another one, such as gc in bugcheck
)

// showLines puts the best lines of each file into the answer. The first file has a block: most often it has
// the answer, and single lines would send the reader to the file.
func (r *ranking) showLines() error {
	for i := range r.out.Files {
		f := &r.out.Files[i]
		c := r.files[fileKey{f.Repo, f.Path}]
		switch {
		case i == 0:
			lines, err := r.linesIn([]*candidate{c}, Lookup{Lines: windowLines, Scopes: true})
			if err != nil {
				return err
			}
			f.Lines = blockOf(lines[c.fileKey], r.words)
		case i < rankedTop:
			f.Lines = bestOf(c.lines, rankedLines)
		default:
			// A reader wants to know at a glance what the tenth file is.
			f.Lines = bestOf(c.lines, 1)
		}
		if f.Words = bits.OnesCount64(c.has); f.Words == len(r.out.Words) {
			r.out.Whole++
		}
	}
	return nil
}

// linesIn reads the lines of files that have words, by file.
func (r *ranking) linesIn(files []*candidate, l Lookup) (map[fileKey][]lineWithWords, error) {
	lines := map[fileKey][]lineWithWords{}
	if len(files) == 0 {
		return lines, nil
	}
	found, err := r.search(l, append(restrictTo(files), r.anyInText(r.foundWords()))...)
	if err != nil {
		return nil, err
	}
	defer found.close()
	if _, err := found.respondWith(nil); err != nil { // the files are used as they came
		return nil, err
	}

	// The search takes repositories and paths separately, so another repository may have a file at the
	// same path.
	for i := range found.a.files {
		f := &found.a.files[i]
		c := r.files[fileKey{f.RepoName, f.Path}]
		if c == nil {
			continue
		}
		lines[c.fileKey] = r.linesOf(c, f.Chunks)
		if f.Tally != nil {
			c.takeTally(r.words, f.Tally)
		}
	}
	return lines, nil
}

// place is where a text has a word.
type place struct{ word, at int }

// lineWithWords is a line of a file and how strongly it has each word.
type lineWithWords struct {
	RankedLine
	words  [rankedWords]float64
	weight float64
}

// linesOf returns the lines of a file, and notes which words and symbols it has.
func (r *ranking) linesOf(c *candidate, chunks []shard.Chunk) []lineWithWords {
	in := scopesOf(chunks)
	var lines []lineWithWords
	byNumber := map[int]int{}
	for _, l := range linesOf(chunks) {
		byNumber[l.Number] = len(lines)
		lines = append(lines, lineWithWords{RankedLine: RankedLine{l, in[l.Number]}})
	}

	for i := range chunks {
		k := &chunks[i]
		for _, m := range k.Ranges {
			at, ok := byNumber[int(m.Start.Line)]
			if !ok {
				continue
			}
			from, to := m.Start.Offset-k.Start.Offset, m.End.Offset-k.Start.Offset
			for _, p := range r.placesIn(k.Content[from:to]) {
				c.has |= 1 << p.word
				strength := insideWord
				if beginsPart(k.Content, int(from)+p.at) {
					strength = 1
				}
				lines[at].words[p.word] = max(lines[at].words[p.word], strength)
			}
		}
	}

	// An overlong line was written by a program and has everything side by side: it counts less.
	for i := range lines {
		l := &lines[i]
		l.weight = weightOf(r.words, &l.words)
		if len(l.Text) > longLine {
			l.weight *= longLineRate
		}
	}
	return lines
}

// placesIn returns the words in a matched text, and where they begin.
func (r *ranking) placesIn(text []byte) []place {
	places, known := r.forms[string(text)]
	if known {
		return places
	}
	for i := range r.words {
		if at, _, ok := r.words[i].m.Next(text, 0); ok {
			places = append(places, place{i, at})
		}
	}
	r.forms[string(text)] = places
	return places
}

// weightOf returns what the words of a line or of several lines weigh.
func weightOf(words []rankedWord, strength *[rankedWords]float64) (sum float64) {
	for i := range words {
		sum += strength[i] * words[i].weight
	}
	return sum
}

// bestOf returns the n lines with the most weight, in the order of the file.
func bestOf(lines []lineWithWords, n int) []RankedLine {
	best := slices.DeleteFunc(slices.Clone(lines), func(l lineWithWords) bool { return l.Around })
	slices.SortStableFunc(best, func(a, b lineWithWords) int { return cmp.Compare(b.weight, a.weight) })
	best = best[:min(len(best), n)]
	slices.SortFunc(best, func(a, b lineWithWords) int { return a.Number - b.Number })

	var out []RankedLine
	for _, l := range best {
		out = append(out, l.RankedLine)
	}
	return out
}

// block is a run of lines and what its words weigh together.
type block struct {
	from, to int
	weight   float64
}

// bestBlock returns the run of at most windowLines lines whose words weigh the most together. Its weight is
// 0 if all lines with words are overlong.
func bestBlock(lines []lineWithWords, words []rankedWord) (best block) {
	for last := range lines {
		if lines[last].Around || len(lines[last].Text) > longLine {
			continue
		}
		var together [rankedWords]float64
		first := last
		for i := last; i >= 0 && lines[i].Number > lines[last].Number-windowLines; i-- {
			if l := &lines[i]; !l.Around && len(l.Text) <= longLine {
				first = i
				for w := range words {
					together[w] = max(together[w], l.words[w])
				}
			}
		}
		if sum := weightOf(words, &together); sum > best.weight {
			best = block{lines[first].Number, lines[last].Number, sum}
		}
	}
	return best
}

// blockOf returns the lines of the best block, with the line before it, often a head, and some lines after
// it. A file that has only overlong lines shows single ones.
func blockOf(lines []lineWithWords, words []rankedWord) (shown []RankedLine) {
	best := bestBlock(lines, words)
	if best.weight == 0 {
		return bestOf(lines, rankedLines)
	}

	from, to := best.from-1, max(best.to+1, best.from+windowLines-2)
	for _, l := range lines {
		if blank := len(bytes.TrimSpace(l.Text)) == 0; !blank && l.Number >= from && l.Number <= to {
			shown = append(shown, l.RankedLine)
		}
	}
	return shown
}

// scopesOf returns the definition that encloses each line with a match, by line number.
func scopesOf(chunks []shard.Chunk) map[int]shard.Symbol {
	in := map[int]shard.Symbol{}
	for _, c := range chunks {
		for i, y := range c.Around {
			in[int(c.Ranges[i].Start.Line)] = y
		}
	}
	return in
}
