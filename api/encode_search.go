package api

import (
	"time"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// appendSearch appends the answer of POST /api/search.
func appendSearch(dst []byte, r *search.Response) []byte {
	dst = appendStats(append(dst, `{"stats":`...), &r.Stats)
	dst = appendFiles(append(dst, `,"files":`...), r.Files)
	dst = appendRepositories(append(dst, `,"repositoryInfo":`...), r.Repositories)
	dst = appendCoverage(dst, r.Coverage)
	dst = appendCluster(append(dst, `,"cluster":`...), &r.Cluster)
	dst = appendFacets(appendHints(appendPast(dst, r.Past), r.Hints), r.Facets)

	// Absent where nothing stands behind the answer.
	if r.Next != "" {
		dst = appendTextField(dst, `,"next":`, r.Next)
	}
	return append(dst, '}')
}

// meaning is what a query names, and the lines that have most of it.
type meaning struct {
	goTo    []suggest.Target
	nearest *suggest.Nearest
}

// appendMeant puts a meaning into the object that ends dst; nil adds nothing.
func appendMeant(dst []byte, m *meaning) []byte {
	if m == nil {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"goTo":[`...)
	for i := range m.goTo {
		if i > 0 {
			dst = append(dst, ',')
		}
		text, _ := reply.Encode(&m.goTo[i]) // of strings and numbers
		dst = append(dst, text...)
	}
	dst = append(dst, ']')

	if n := m.nearest; n != nil {
		dst = appendTextField(append(dst, `,"nearest":{`...), `"parts":`, n.Parts)
		dst = appendTextField(dst, `,"query":`, n.Request.Query)
		dst = append(appendSearch(append(dst, `,"isRegexEnabled":true,"answer":`...), n.Response), '}')
	}
	return append(dst, '}')
}

// appendCoverage appends whether an answer has all that was asked for, and what it has
// not; where that is nothing, nothing.
func appendCoverage(dst []byte, c coverage.Coverage) []byte {
	dst = appendBool(dst, `,"isSearchExhaustive":`, c.Exhaustive())
	gaps := c.Gaps()
	if len(gaps) == 0 {
		return dst
	}

	dst = append(dst, `,"notSearched":[`...)
	for i, g := range gaps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendGap(dst, g)
	}
	return append(dst, ']')
}

// appendGap appends what was not searched: a count that is not known is absent.
func appendGap(dst []byte, g coverage.Gap) []byte {
	dst = appendTextField(dst, `{"kind":`, string(g.Kind))
	if g.Count > 0 {
		dst = appendInt(dst, `,"count":`, g.Count)
	}
	if g.Of > 0 {
		dst = appendInt(dst, `,"of":`, g.Of)
	}
	if g.Ref != "" {
		dst = appendTextField(dst, `,"revision":`, g.Ref)
	}

	// The first files by name.
	for i, f := range g.Files {
		if i == 0 {
			dst = append(dst, `,"files":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendTextField(dst, `{"repository":`, f.Repo)
		dst = append(appendTextField(dst, `,"path":`, f.Path), '}')
	}
	if len(g.Files) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendFacets appends what files were counted by; where nobody asked, nothing.
func appendFacets(dst []byte, f *search.Facets) []byte {
	if f == nil {
		return dst
	}
	dst = appendFacet(dst, `,"facets":{"repositories":[`, f.Repositories, f.Exact)
	dst = appendFacet(dst, `],"languages":[`, f.Languages, f.Exact)
	dst = appendFacet(dst, `],"paths":[`, f.Paths, f.Exact)
	dst = appendFacet(dst, `],"revisions":[`, f.Revisions, f.Exact)
	return append(dst, `]}`...)
}

// appendFacet appends the most frequent values of a property.
func appendFacet(dst []byte, name string, values []search.FacetValue, exact bool) []byte {
	dst = append(dst, name...)
	for i, v := range values[:min(len(values), search.MaxFacetValues)] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTextField(dst, `{"value":`, v.Value)
		dst = appendInt(dst, `,"count":`, v.Files)
		dst = append(appendBool(dst, `,"exact":`, exact), '}')
	}
	return dst
}

// appendHints appends what is to be said of the query; where that is nothing, nothing.
func appendHints(dst []byte, hints []string) []byte {
	if len(hints) == 0 {
		return dst
	}
	return appendTexts(dst, `,"hints":`, hints)
}

// appendPast appends the repositories of which a commit was read from git; where
// there are none, nothing.
func appendPast(dst []byte, past []search.PastRepo) []byte {
	for i, p := range past {
		if i == 0 {
			dst = append(dst, `,"past":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendTextField(dst, `{"repository":`, p.Repository)
		dst = appendTextField(dst, `,"commit":`, p.Commit)
		dst = appendTextField(dst, `,"committedAt":`, p.Time.UTC().Format(time.RFC3339))
		dst = appendInt(dst, `,"filesScanned":`, p.Read)
		dst = appendInt(dst, `,"bytesScanned":`, p.Bytes)

		// Absent where nothing of the repository came from its index.
		if p.Beside != "" {
			dst = appendTextField(dst, `,"indexedRevision":`, p.Beside)
		}
		dst = append(dst, '}')
	}
	if len(past) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// encodedSize is about how many bytes the JSON of files has, and so about how
// many they hold in memory.
func encodedSize(files []search.File) int64 {
	const perFile, perChunk, perRange, perSymbol = 256, 128, 128, 64
	n := 512
	for i := range files {
		f := &files[i]
		n += perFile + len(f.Path) + len(f.WebURL) + len(f.ExternalWebURL) + len(f.Content)*9/8 + perRange*len(f.NameRanges)
		for j := range f.Chunks {
			k := &f.Chunks[j]
			n += perChunk + len(k.Content)*9/8 + perRange*len(k.Ranges) + perSymbol*len(k.Symbols)
		}
	}
	return int64(n)
}

// appendChunkEvent appends one part of a streamed answer.
func appendChunkEvent(dst []byte, c *search.Chunk) []byte {
	dst = appendStats(append(dst, `{"type":"chunk","stats":`...), &c.Stats)
	dst = appendFiles(append(dst, `,"files":`...), c.Files)
	dst = appendRepositories(append(dst, `,"repositoryInfo":`...), c.Repositories)
	return append(dst, '}')
}

// appendFinalEvent appends the last part of a streamed answer.
func appendFinalEvent(dst []byte, r *search.Response) []byte {
	dst = appendStats(append(dst, `{"type":"final","accumulatedStats":`...), &r.Stats)
	dst = appendCoverage(dst, r.Coverage)
	dst = appendCluster(append(dst, `,"cluster":`...), &r.Cluster)
	return append(appendFacets(appendHints(appendPast(dst, r.Past), r.Hints), r.Facets), '}')
}

func appendStats(dst []byte, s *search.Stats) []byte {
	dst = appendInt(dst, `{"actualMatchCount":`, s.ActualMatches)
	dst = appendInt(dst, `,"totalMatchCount":`, s.TotalMatches)
	dst = appendInt(dst, `,"duration":`, s.Duration)
	dst = appendInt(dst, `,"fileCount":`, s.Files)
	dst = appendInt(dst, `,"filesSkipped":`, s.FilesSkipped)
	dst = appendInt(dst, `,"filesNotSearched":`, s.FilesNotSearched)
	dst = appendInt(dst, `,"contentBytesLoaded":`, s.ContentBytes)
	dst = appendInt(dst, `,"indexBytesLoaded":`, s.IndexBytes)
	dst = appendInt(dst, `,"crashes":`, s.Crashes)
	dst = appendInt(dst, `,"shardFilesConsidered":`, s.ShardFiles)
	dst = appendInt(dst, `,"filesConsidered":`, s.FilesConsidered)
	dst = appendInt(dst, `,"filesLoaded":`, s.FilesLoaded)

	// How the work went.
	dst = appendInt(dst, `,"shardsScanned":`, s.ShardsScanned)
	dst = appendInt(dst, `,"shardsSkipped":`, s.ShardsSkipped)
	dst = appendInt(dst, `,"shardsSkippedFilter":`, s.ShardsFiltered)
	dst = appendInt(dst, `,"ngramMatches":`, s.NgramMatches)
	dst = appendInt(dst, `,"ngramLookups":`, s.NgramLookups)
	dst = appendInt(dst, `,"wait":`, s.Wait)
	dst = appendInt(dst, `,"matchTreeConstruction":`, s.Planning)
	dst = appendInt(dst, `,"matchTreeSearch":`, s.Searching)
	dst = appendInt(dst, `,"regexpsConsidered":`, s.RegexpsConsidered)

	dst = appendTextField(dst, `,"flushReason":`, string(s.FlushReason))
	dst = appendInt(dst, `,"shardsRequired":`, s.ShardsRequired)
	dst = appendInt(dst, `,"shardsAnswered":`, s.ShardsAnswered)
	if s.UnknownRevision != "" {
		dst = appendTextField(dst, `,"unknownRevision":`, s.UnknownRevision)
	}
	return append(dst, '}')
}

func appendFiles(dst []byte, files []search.File) []byte {
	dst = append(dst, '[')
	for i := range files {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendFile(dst, &files[i])
	}
	return append(dst, ']')
}

func appendFile(dst []byte, f *search.File) []byte {
	dst = appendTextField(dst, `{"fileName":{"text":`, f.Path)
	dst = appendRanges(dst, `,"matchRanges":`, f.NameRanges)
	dst = appendTextField(dst, `},"webUrl":`, f.WebURL)
	if f.ExternalWebURL != "" {
		dst = appendTextField(dst, `,"externalWebUrl":`, f.ExternalWebURL)
	}

	dst = appendTextField(dst, `,"repository":`, f.Repository)
	dst = appendUint(dst, `,"repositoryId":`, f.RepoID)
	dst = appendTextField(dst, `,"language":`, f.Language)
	if f.Encoding != "" {
		dst = appendTextField(dst, `,"encoding":`, f.Encoding)
	}

	// A list in any case: a file that was found by its name has an empty one.
	dst = append(dst, `,"chunks":[`...)
	for i := range f.Chunks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChunk(dst, &f.Chunks[i])
	}

	dst = appendTexts(dst, `],"branches":`, f.Branches)

	// Only where the request asked for whole files, also of an empty one.
	if f.Content != nil {
		dst = appendTextField(dst, `,"content":`, f.Content)
	}
	return append(dst, '}')
}

func appendChunk(dst []byte, c *shard.Chunk) []byte {
	dst = appendTextField(dst, `{"content":`, c.Content)
	dst = appendRanges(dst, `,"matchRanges":`, c.Ranges)
	dst = appendPosition(append(dst, `,"contentStart":`...), c.Start)

	// Only where the lines are not whole.
	if c.Before > 0 || c.After > 0 {
		dst = appendUint(dst, `,"cut":{"before":`, c.Before)
		dst = append(appendUint(dst, `,"after":`, c.After), '}')
	}

	// Ranges without a symbol have none of the list.
	dst = append(dst, `,"symbols":[`...)
	first := true
	for i := range c.Symbols {
		if c.Symbols[i].Name == "" {
			continue
		}

		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendSymbol(dst, &c.Symbols[i])
	}
	return append(dst, `]}`...)
}

func appendSymbol(dst []byte, s *shard.Symbol) []byte {
	dst = appendTextField(dst, `{"symbol":`, s.Name)
	dst = appendTextField(dst, `,"kind":`, s.Kind)
	if s.ParentName != "" {
		dst = appendTextField(dst, `,"parent":{"symbol":`, s.ParentName)
		dst = appendTextField(dst, `,"kind":`, s.ParentKind)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendRepositories(dst []byte, repos []browse.RepoInfo) []byte {
	dst = append(dst, '[')
	for i := range repos {
		r := &repos[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendUint(dst, `{"id":`, r.ID)
		dst = appendTextField(dst, `,"codeHostType":`, r.HostKind)
		dst = appendTextField(dst, `,"name":`, r.Name)
		dst = appendTextField(dst, `,"displayName":`, r.DisplayName)

		// A repository of no host, as a directory, has no page there.
		if r.ExternalWebURL != "" {
			dst = appendTextField(dst, `,"webUrl":`, r.ExternalWebURL)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendCluster(dst []byte, c *search.ClusterInfo) []byte {
	dst = appendUint(dst, `{"catalogIndex":`, c.CatalogIndex)
	dst = appendInt(dst, `,"catalogAgeMs":`, c.CatalogAge.Milliseconds())
	dst = appendTexts(dst, `,"shardsMissing":`, c.ShardsMissing)
	dst = appendTexts(dst, `,"reposMissing":`, c.ReposMissing)
	dst = appendTexts(dst, `,"nodesFailed":`, c.NodesFailed)
	return append(dst, '}')
}

// appendSymbols appends the answer of find_definitions and find_references.
func appendSymbols(dst []byte, r *symbols.SymbolResponse) []byte {
	dst = appendInt(dst, `{"stats":{"matchCount":`, r.MatchCount)
	dst = append(dst, `},"files":[`...)
	for i := range r.Files {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendSymbolFile(dst, &r.Files[i])
	}
	dst = appendRepositories(append(dst, `],"repositoryInfo":`...), r.Repositories)
	dst = appendCoverage(dst, r.Coverage)
	return append(dst, '}')
}

func appendSymbolFile(dst []byte, f *symbols.SymbolFile) []byte {
	dst = appendTextField(dst, `{"fileName":`, f.Path)
	dst = appendTextField(dst, `,"repository":`, f.Repository)
	dst = appendUint(dst, `,"repositoryId":`, f.RepoID)
	dst = appendTextField(dst, `,"webUrl":`, f.WebURL)
	dst = appendTextField(dst, `,"language":`, f.Language)
	dst = append(dst, `,"matches":[`...)

	for i := range f.Matches {
		m := &f.Matches[i]
		if i > 0 {
			dst = append(dst, ',')
		}

		dst = appendTextField(dst, `{"lineContent":`, m.Line)
		dst = appendRange(append(dst, `,"range":`...), m.Range)

		// References have no kind: they were found by their text.
		if m.Kind != "" {
			dst = appendTextField(dst, `,"kind":`, m.Kind)
		}
		if m.ParentName != "" {
			dst = appendTextField(dst, `,"parent":{"symbol":`, m.ParentName)
			dst = append(appendTextField(dst, `,"kind":`, m.ParentKind), '}')
		}

		// Only where the request asked for it.
		if m.Signature != "" {
			dst = appendTextField(dst, `,"signature":`, m.Signature)
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}
