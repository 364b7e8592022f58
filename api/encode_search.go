package api

import (
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
	dst = appendValue(append(dst, `{"stats":`...), &r.Stats)
	dst = appendFiles(append(dst, `,"files":`...), r.Files)
	dst = appendRepositories(append(dst, `,"repositoryInfo":`...), r.Repositories)
	dst = appendFacets(appendReach(dst, r), r.Facets)

	// The last page has no next.
	if r.Next != "" {
		dst = appendTextField(dst, `,"next":`, r.Next)
	}
	return append(dst, '}')
}

// reach has the members that say whether an answer is complete, which nodes it comes from, and what
// could improve the query.
type reach struct {
	completeness
	Cluster *search.ClusterInfo `json:"cluster"`
	Past    []search.PastRepo   `json:"past,omitempty"` // repositories read from git at a commit without an index
	Hints   []string            `json:"hints,omitempty"`
}

// completeness says whether an answer is complete, and if not, what was not searched.
type completeness struct {
	Exhaustive  bool           `json:"isSearchExhaustive"`
	NotSearched []coverage.Gap `json:"notSearched,omitempty"`
}

func completenessOf(c coverage.Coverage) completeness { return completeness{c.Exhaustive(), c.Gaps()} }

// appendReach appends the members of reach to the current object.
func appendReach(dst []byte, r *search.Response) []byte {
	return appendMembers(dst, &reach{completenessOf(r.Coverage), &r.Cluster, r.Past, r.Hints})
}

// appendValue appends the JSON of a small value.
func appendValue(dst []byte, v any) []byte {
	text, _ := reply.Encode(v) // strings, numbers and times always encode
	return append(dst, text...)
}

// appendMembers appends the members of v to the current object, which has members already. v must
// have at least one.
func appendMembers(dst []byte, v any) []byte {
	at := len(dst)
	dst = appendValue(dst, v)
	dst[at] = ','
	return dst[:len(dst)-1]
}

// meaning is what a query may mean: targets that it names, and a search for lines with most of its
// words; nil without one.
type meaning struct {
	goTo    []suggest.Target
	nearest *suggest.Nearest
}

// appendMeaning adds the meaning to the closed object at the end of dst; nil adds nothing.
func appendMeaning(dst []byte, m *meaning) []byte {
	if m == nil {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"goTo":[`...)
	for i := range m.goTo {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, &m.goTo[i])
	}
	dst = append(dst, ']')

	if n := m.nearest; n != nil {
		dst = appendTextField(append(dst, `,"nearest":{`...), `"parts":`, n.Parts)
		dst = appendTextField(dst, `,"query":`, n.Request.Query)
		dst = append(appendSearch(append(dst, `,"isRegexEnabled":true,"answer":`...), n.Response), '}')
	}
	return append(dst, '}')
}

// appendFacets appends the counts by property; nil appends nothing.
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

// appendFacet appends the most frequent values of one property.
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

// encodedSize estimates the bytes of the files' JSON. In memory the files use about as many.
func encodedSize(files []search.File) int64 {
	// Bytes besides names and content; a content grows by an eighth from its escapes.
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
	dst = appendValue(append(dst, `{"type":"chunk","stats":`...), &c.Stats)
	dst = appendFiles(append(dst, `,"files":`...), c.Files)
	dst = appendRepositories(append(dst, `,"repositoryInfo":`...), c.Repositories)
	return append(dst, '}')
}

// appendFinalEvent appends the last part of a streamed answer.
func appendFinalEvent(dst []byte, r *search.Response) []byte {
	dst = appendValue(append(dst, `{"type":"final","accumulatedStats":`...), &r.Stats)
	return append(appendFacets(appendReach(dst, r), r.Facets), '}')
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

	// A file that only matches by its name has an empty list.
	dst = append(dst, `,"chunks":[`...)
	for i := range f.Chunks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChunk(dst, &f.Chunks[i])
	}

	dst = appendTexts(dst, `],"branches":`, f.Branches)

	// Content is nil unless the request asked for whole files. An empty file has "".
	if f.Content != nil {
		dst = appendTextField(dst, `,"content":`, f.Content)
	}
	return append(dst, '}')
}

func appendChunk(dst []byte, c *shard.Chunk) []byte {
	dst = appendTextField(dst, `{"content":`, c.Content)
	dst = appendRanges(dst, `,"matchRanges":`, c.Ranges)
	dst = appendPosition(append(dst, `,"contentStart":`...), c.Start)

	// Before and After are the bytes left out of long lines.
	if c.Before > 0 || c.After > 0 {
		dst = appendUint(dst, `,"cut":{"before":`, c.Before)
		dst = append(appendUint(dst, `,"after":`, c.After), '}')
	}

	// Ranges outside of symbols have an empty symbol. Leave those out.
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

// appendRepositories appends repositories as a JSON array.
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

		// A local repository has no page at a code host.
		if r.ExternalWebURL != "" {
			dst = appendTextField(dst, `,"webUrl":`, r.ExternalWebURL)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
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
	complete := completenessOf(r.Coverage)
	return append(appendMembers(dst, &complete), '}')
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

		// References are found by text, so their kind is unknown.
		if m.Kind != "" {
			dst = appendTextField(dst, `,"kind":`, m.Kind)
		}
		if m.ParentName != "" {
			dst = appendTextField(dst, `,"parent":{"symbol":`, m.ParentName)
			dst = append(appendTextField(dst, `,"kind":`, m.ParentKind), '}')
		}

		// Signature is empty unless the request asked for it.
		if m.Signature != "" {
			dst = appendTextField(dst, `,"signature":`, m.Signature)
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}
