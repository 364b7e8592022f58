package api

import (
	"io"
	"strings"
	"testing"
)

// A head that two programs in a row might read differently is refused.
func TestRequestHead_isRefusedIfAmbiguous(t *testing.T) {
	t.Parallel()
	f := newFlooded(t, true, func(*Options) {})
	const post = "POST /api/search HTTP/1.1\r\nHost: localhost\r\n"
	const body = `{"query":"a"}`
	for name, c := range map[string]struct{ text, want string }{
		"a length":                         {post + "Content-Type: application/json\r\nContent-Length: 13\r\n\r\n" + body, "200"},
		"chunks":                           {post + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", "200"},
		"chunks in other letters":          {post + "transfer-encoding:  Chunked \r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", "200"},
		"an empty field":                   {post + "X:\r\nContent-Length: 13\r\n\r\n" + body, "200"},
		"a line feed alone":                {post + "X: a\nContent-Length: 13\r\n\r\n" + body, "400"},
		"a line feed before chunks":        {post + "X: a\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", "400"},
		"a line feed after the first line": {"GET /livez HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n", "400"},
		"a carriage return alone":          {post + "X: a\rb\r\nContent-Length: 13\r\n\r\n" + body, "400"},
		"a folded field":                   {post + "X: a\r\n b\r\nContent-Length: 13\r\n\r\n" + body, "400"},
		"a field folded by a tab":          {post + "X: a\r\n\tb\r\nContent-Length: 13\r\n\r\n" + body, "400"},
		"a folded encoding":                {post + "Content-Length: 13\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + body, "400"},
		"an encoding beside a length":      {post + "Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", "400"},
		"a length beside an encoding":      {post + "Transfer-Encoding: chunked\r\nContent-Length: 13\r\n\r\nd\r\n" + body + "\r\n0\r\n\r\n", "400"},
		"an encoding that does nothing":    {post + "Transfer-Encoding: identity\r\nContent-Length: 13\r\n\r\n" + body, "400"},
		"another encoding":                 {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400"},
		"a blank before the colon":         {post + "Content-Length : 13\r\n\r\n" + body, "400"},
		"two lengths":                      {post + "Content-Length: 13\r\nContent-Length: 13\r\n\r\n" + body, "400"},
		"a mark of ours":                   {"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + headerAmbiguous + ": yes\r\n\r\n", "200"},
	} {
		conn := f.send("127.0.0.1", strings.Replace(c.text, "\r\nHost: localhost", "\r\nConnection: close\r\nHost: localhost", 1))
		answer, err := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.want) {
			t.Errorf("%s: %.60q %v, want %s", name, answer, err, c.want)
		}
	}
}
