package web

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf16"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/suggest"
)

// suggest answers a script with completions of the query at the cursor. Each has the whole new query,
// and the new position of the cursor.
func (p *searching) suggest(ctx context.Context, v *layout.Visit) error {
	text := v.Query.Get("query")
	cursor, err := strconv.Atoi(v.Query.Get("cursor"))
	if err != nil {
		cursor = len(text) // complete the end of the query
	}
	list, err := p.suggester.Complete(ctx, v.Viewer, text, cursor)
	if err != nil {
		return err
	}

	b := []byte(`<ul id="suggest" role="listbox" aria-label="Suggestions">`)
	for i, s := range list {
		query := text[:s.Start] + s.Insert + text[s.End:]
		// Scripts count UTF-16 units, and the node bytes.
		at := len(utf16.Encode([]rune(text[:s.Start] + s.Insert)))
		b = fmt.Appendf(b, `<li role="option" id="suggest%d" aria-selected="false" data-kind="%s" data-at="%d" data-query="`, i, s.Kind, at)
		b = appendAttribute(b, query)
		if s.Kind == suggest.File {
			b = append(append(b, `" data-url="`...), address(s.Detail, "", "blob", s.Label)...)
		}
		b = append(append(b, `"><span>`...), layout.Icon(suggestIcons[s.Kind])...)
		b = append(append(b, layout.Name(s.Label)...), `</span> <span class="dim">`...)
		b = append(append(b, layout.Name(detailOf(&s))...), "</span></li>\n"...)
	}
	v.Mime, v.Body = layout.MimeHTML, append(b, "</ul>"...)
	return nil
}

// suggestIcons has the icons of kinds of suggestions. Other kinds have none.
var suggestIcons = map[suggest.Kind]string{suggest.Repository: "repo", suggest.File: "file", suggest.Symbol: "function", suggest.Revision: "branch", suggest.Language: "type", suggest.ContextOf: "filter"}

// detailOf returns the text beside a suggestion: its kind, and where it is.
func detailOf(s *suggest.Suggestion) string {
	switch {
	case s.Kind == suggest.Filter || s.Kind == suggest.Value || s.Kind == suggest.Revision:
		return s.Detail
	case s.Detail == "":
		return string(s.Kind)
	case s.Kind == suggest.Symbol:
		return s.Detail
	}
	return string(s.Kind) + ": " + s.Detail
}
