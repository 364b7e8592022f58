package search

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/shoalsearch/shoal/shard"
)

// sealedPlace is a place as it is sealed. Every answer with more behind it has one, so
// that making it has to be cheap; names are bytes, as git lets them have any.
type sealedPlace struct {
	Query, State []byte
	First        *sealedFirst `json:",omitempty"`
	Shown        shard.Tally
	After        *sealedMark `json:",omitempty"`
	Name         []byte      `json:",omitempty"`
}

type sealedFirst struct {
	MaxMatches int
	Last       sealedMark
}

type sealedMark struct {
	Score           uint64 // the bits of a float64
	Repo, Path, OID []byte
	Revisions       [][]byte
	Shown           int
}

// encode is the text of a place, which placeOf reads.
func (p *place) encode() []byte {
	out := sealedPlace{Query: p.Query, State: p.State, Shown: p.Shown, Name: []byte(p.Name)}
	if p.First != nil {
		out.First = &sealedFirst{p.First.MaxMatches, sealMark(&p.First.Last)}
	}
	if p.After != nil {
		mark := sealMark(p.After)
		out.After = &mark
	}

	text, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("BUG: a place cannot be encoded: %v", err))
	}
	return text
}

// placeOf reads what encode wrote, maybe on another node.
func placeOf(text []byte) (*place, error) {
	in := sealedPlace{}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}

	p := &place{Query: in.Query, State: in.State, Shown: in.Shown, Name: string(in.Name)}
	if in.First != nil {
		p.First = &shard.First{MaxMatches: in.First.MaxMatches, Last: *in.First.Last.mark()}
	}
	if in.After != nil {
		p.After = in.After.mark()
	}
	return p, nil
}

func sealMark(m *shard.Mark) sealedMark {
	out := sealedMark{
		Score: math.Float64bits(m.Score),
		Repo:  []byte(m.Repo),
		Path:  []byte(m.Path),
		OID:   []byte(m.OID),
		Shown: m.Shown,
	}
	for _, name := range m.Revisions {
		out.Revisions = append(out.Revisions, []byte(name))
	}
	return out
}

func (m *sealedMark) mark() *shard.Mark {
	out := &shard.Mark{
		Score: math.Float64frombits(m.Score),
		Repo:  string(m.Repo),
		Path:  string(m.Path),
		OID:   string(m.OID),
		Shown: m.Shown,
	}
	for _, name := range m.Revisions {
		out.Revisions = append(out.Revisions, string(name))
	}
	return out
}
