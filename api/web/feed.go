package web

import (
	"context"
	"encoding/xml"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

// atom is a feed as RFC 4287 has it.
type atom struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Title   string      `xml:"title"`
	ID      string      `xml:"id"`
	Updated string      `xml:"updated"`
	Link    atomLink    `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	Title   string   `xml:"title"`
	ID      string   `xml:"id"`
	Updated string   `xml:"updated"`
	Author  string   `xml:"author>name"`
	Link    atomLink `xml:"link"`
	Content string   `xml:"content"`
}

// feed is the last commits of a revision, or of the path that the query names,
// for readers of feeds.
func (p *revisions) feed(ctx context.Context, v *layout.Visit, l place) error {
	// The address of a feed has the path in the query: behind the kind it
	// would be one page for each directory.
	l.Path = v.Query.Get("path")
	r, err := p.reader.Commits(ctx, v.Viewer, browse.CommitsRequest{Repo: l.Repo, Ref: l.Rev, Path: l.Path, PerPage: commitsPerPage})
	if err != nil {
		return err
	}

	// The address is the identity that the format demands, and readers of feeds keep to it.
	base := p.base()
	page := base + l.At("commits", l.Path)
	// The format demands a time, also of a feed that has no entry.
	out := atom{Title: layout.Plain(l.Repo + " " + l.Revision() + " " + l.Path), ID: page, Link: atomLink{page}, Updated: stamp(p.now())}

	for i := range r.Commits {
		c := &r.Commits[i]
		// The newest commit is the first.
		if i == 0 {
			out.Updated = stamp(c.Date)
		}

		// Of the commit alone, so that it is the same entry in the feed of each path and revision.
		url := base + address(l.Repo, "", "commit", c.Hash)
		out.Entries = append(out.Entries, atomEntry{layout.Plain(c.Message), url, stamp(c.Date), layout.Plain(c.AuthorName), atomLink{url}, layout.Plain(c.Body)})
	}

	// Names and messages are from git: the encoder escapes them, and Plain shows what would hide.
	text, err := xml.MarshalIndent(out, "", " ")
	v.Mime, v.Body = "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...)
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
