package api

import (
	"testing"

	nodecall "github.com/shoalsearch/shoal/node/call"
)

func TestThePlaceInAQueryIsToldOnce(t *testing.T) {
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
