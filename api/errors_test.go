package api

import (
	"context"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
)

func TestQueryError_namesThePositionOnce(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"at byte 5: expected a word": "at byte 5: expected a word",
		"that is no query":           "that is no query (at byte 5, expected a word)",
	} {
		f := fromNode(400, codeQuery, &nodecall.Error{Kind: nodecall.ErrQuery, Message: message, Offset: 5, Expected: "a word"})
		if f.Message != want {
			t.Errorf("got %q, want %q", f.Message, want)
		}
	}
}

// The error body of a wrong query has extra members, in an answer and in the last event of a
// stream. No other error has them.
func TestQueryError_hasPositionMembersInAnswersAndEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{mistake(), `{"statusCode":400,"errorCode":"FAILED_TO_PARSE_QUERY","message":"at byte 7: expected yes, no or auto after case:","offset":7,"length":5,"expected":["yes","no","auto"],"suggestion":"\"x case:maybe\""}`},
		// Zeros are written too: at the start, and if something is missing.
		{&nodecall.Error{Kind: nodecall.ErrQuery, Message: "at byte 0: expected a word", Expected: "a word"}, `{"statusCode":400,"errorCode":"FAILED_TO_PARSE_QUERY","message":"at byte 0: expected a word","offset":0,"length":0,"expected":["a word"]}`},
		{&nodecall.Error{Kind: nodecall.ErrQuery, Message: "no query", Suggestion: "q"}, `{"statusCode":400,"errorCode":"FAILED_TO_PARSE_QUERY","message":"no query (at byte 0)"}`},
		{&nodecall.Error{Kind: nodecall.ErrInvalid, Message: "no", Offset: 3, Expected: "a word"}, `{"statusCode":400,"errorCode":"INVALID_REQUEST_BODY","message":"no"}`},
	} {
		f := &fake{err: c.err}
		s := start(t, f.parts())
		for _, path := range []string{"/api/search", "/api/stream_search"} {
			if _, got := ask(t, s, "POST", path, `{"query":"a"}`); string(got) != c.want {
				t.Errorf("%s: got %s, want %s", path, got, c.want)
			}
		}

		late := start(t, (&fake{stream: func(_ context.Context, _ catalog.Viewer, _ search.Request, send func(*search.Chunk) error) (*search.Response, error) {
			if err := send(&search.Chunk{}); err != nil {
				return nil, err
			}
			return nil, c.err
		}}).parts())
		_, got := ask(t, late, "POST", "/api/stream_search", `{"query":"a"}`)
		if want := `data: {"type":"error","error":` + c.want + "}\n\n"; !strings.HasSuffix(string(got), want) {
			t.Errorf("an event: got %s, want %s", got, want)
		}
	}
}
