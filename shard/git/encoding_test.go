package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Log finds a message by its letters in any encoding of the commit. The expected text is what git
// shows.
func TestLog_findsMessagesInAnyEncoding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ encoding, bytes, text string }{
		{"ISO-8859-1", "Pr\xfcfung", "Prüfung"},
		{"latin1", "Pr\xfcfung", "Prüfung"},
		{"latin-1", "Pr\xfcfung", "Prüfung"},
		{"iso8859-15", "5 \xa4 more", "5 € more"},
		{"windows-1252", "5 \x80 more", "5 € more"},
		{"CP1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"KOI8-R", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"},
		{"EUC-JP", "\xb8\xa1\xba\xf7", "検索"},
		{"SJIS", "\x8c\x9f\x8d\xf5", "検索"},
		{"ISO-2022-JP", "\x1b$B8!:w\x1b(B", "検索"},
		{"GBK", "\xcb\xd1\xcb\xf7", "搜索"},
		{"UTF-8", "Pr\xc3\xbcfung", "Prüfung"},
		{"ISO-8859-1", "plain", "plain"},
		{"windows-1252", "no letter \x81", "no letter \x81"}, // git cannot decode it and shows the bytes
		{"no-such-encoding", "Pr\xfcfung", "Pr\xfcfung"},
	} {
		t.Run(tt.encoding+" "+tt.text, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			h := &stream{}
			h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "a")
			message := "One\n\n" + tt.bytes
			fmt.Fprintf(h, "commit refs/heads/main\nauthor %s <a@example.org> %d +0000\ncommitter Ci <c@example.org> %d +0000\nencoding %s\ndata %d\n%s\n",
				tt.bytes, at(2), at(2), tt.encoding, len(message), message)
			h.file("a", "b")
			h.commit("refs/heads/main", 3, "Ann", "End", "a", "c")
			r.load(h)
			m := fetched(t, r.url())
			head := r.git("rev-parse", "main")

			shown, err := m.Show(within(t), r.git("rev-parse", "main~1"))
			if want := r.git("log", "-1", "--format=%an|%s|%b", "main~1"); err != nil || shown.AuthorName+"|"+shown.Subject+"|"+shown.Body != want {
				t.Errorf("shown: %q, %v, want %q", shown.AuthorName+"|"+shown.Subject+"|"+shown.Body, err, want)
			}
			queries := []LogQuery{{Query: tt.text}, {Words: strings.Fields(tt.text)}, {Author: tt.text}}
			if utf8.ValidString(tt.text) { // other bytes have no upper or lower case
				queries = append(queries, LogQuery{Query: strings.ToUpper(tt.text)}, LogQuery{Author: strings.ToLower(tt.text)})
			}
			for _, q := range queries {
				q.Commit = head
				page, err := m.Log(within(t), q)
				if got := hashes(page.Commits); err != nil || !slices.Equal(got, []string{"One"}) {
					t.Errorf("query %q, words %q, author %q: %q, %v", q.Query, q.Words, q.Author, got, err)
				}
			}
			if page, err := m.Log(within(t), LogQuery{Commit: head, Query: "end"}); err != nil || !slices.Equal(hashes(page.Commits), []string{"End"}) {
				t.Errorf("another message: %q, %v", hashes(page.Commits), err)
			}
		})
	}
}
