package web

import (
	"context"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
)

// limited answers with as many ranges of a file as are asked for.
type limited struct {
	Searcher
	files, each int
}

func (l limited) Search(_ context.Context, _ catalog.Viewer, r search.Request) (*search.Response, error) {
	resp := &search.Response{}
	for range l.files {
		f := search.File{Matches: l.each}
		n := l.each
		if r.PerFile > 0 {
			n = min(n, r.PerFile)
		}
		f.Chunks = []shard.Chunk{{Ranges: make([]shard.Range, n)}}
		resp.Files = append(resp.Files, f)
	}
	resp.Stats.Files = l.files
	return resp, nil
}

// One file of several shows a part of its matches; alone it has all the room.
func TestAFileAloneHasAllTheRoom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ files, each, want int }{{3, 400, perFile}, {1, 400, 400}, {1, 7, 7}, {0, 0, 0}} {
		p := New(Deps{Search: limited{files: tt.files, each: tt.each}})
		resp, err := p.look(t.Context(), catalog.Guest(), search.Request{PerFile: perFile})
		if err != nil || len(resp.Files) != tt.files {
			t.Fatalf("%+v, %v", resp, err)
		}
		if tt.files > 0 && rangesOf(resp.Files[0].Chunks) != tt.want {
			t.Errorf("%d files of %d matches: the first shows %d, want %d", tt.files, tt.each, rangesOf(resp.Files[0].Chunks), tt.want)
		}
	}
}
