package web

import (
	"context"
	"encoding/xml"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

// atom is a feed, as in RFC 4287.
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

// feed shows the last commits of a revision for feed readers: all, or those that changed the path in
// the query.
func (p *revisions) feed(ctx context.Context, v *layout.Visit, l place) error {
	l.Path = v.Query.Get("path")
	r, err := p.reader.Commits(ctx, v.Viewer, browse.CommitsRequest{Repo: l.Repo, Ref: l.Rev, Path: l.Path, PerPage: commitsPerPage})
	if err != nil {
		return err
	}

	// Atom identifies a feed by an absolute address.
	base := p.base()
	page := base + l.At("commits", l.Path)
	// Atom needs a time even if the feed has no entries.
	out := atom{Title: layout.Plain(l.Repo + " " + l.Revision() + " " + l.Path), ID: page, Link: atomLink{page}, Updated: stamp(p.now())}

	for i := range r.Commits {
		c := &r.Commits[i]
		if i == 0 { // the newest commit
			out.Updated = stamp(c.Date)
		}

		// Identify a commit by its own address, so that it is the same entry in each feed.
		url := base + address(l.Repo, "", "commit", c.Hash)
		out.Entries = append(out.Entries, atomEntry{layout.Plain(c.Message), url, stamp(c.Date), layout.Plain(c.AuthorName), atomLink{url}, layout.Plain(c.Body)})
	}

	// The encoder escapes names and messages, and Plain shows hidden characters.
	text, err := xml.MarshalIndent(out, "", " ")
	v.Mime, v.Body = "application/atom+xml; charset=utf-8", append([]byte(xml.Header), text...)
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
