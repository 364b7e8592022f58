package model_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/model/modeltest"
)

var cutStep = flag.Int("cuts", 17, "bytes between two places at which an answer is cut; 1 for every byte")

// row counts the successes of a model.
type row struct {
	model          config.Model
	wire           string
	text, calls    int // bytes and calls of a complete answer
	echoed, marks  int // values that a provider wants back, or that are marked for its cache, in the second request
	usage          model.Usage
	errors, limits int // refusals of the right kind; answers known to be cut by a limit
	cuts, bytes    int // cuts that were noticed; length of the answer
	overflow       int // cuts after the last byte that matters
}

// It prints what each provider does on its wire (-v), and fails if something is missing. The
// server refuses what the services refuse.
func TestEveryProvider_conversesRefusesAndNoticesCutAnswers(t *testing.T) {
	t.Parallel()
	rows := make([]row, len(all))
	t.Run("providers", func(t *testing.T) {
		for i, tt := range all {
			t.Run(string(tt.m.Provider)+" "+tt.m.Model, func(t *testing.T) {
				t.Parallel()
				rows[i] = row{model: tt.m}
				rows[i].converse(t)
				rows[i].refuse(t)
				rows[i].cut(t)
			})
		}
	})

	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.wire, b.wire), strings.Compare(string(a.model.Provider), string(b.model.Provider)))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "%-9s %-40s %4s %5s %6s %5s %12s %6s %6s %s\n", "wire", "provider, model", "text", "calls", "echoed", "marks", "usage", "errors", "limits", "cuts noticed")
	for _, r := range rows {
		name := fmt.Sprintf("%s %.20s", r.model.Provider, r.model.Model)
		usage := fmt.Sprintf("%d/%d/%d", r.usage.Input, r.usage.Cached, r.usage.Output)
		fmt.Fprintf(&out, "%-9s %-40s %4d %5d %6d %5d %12s %6d %6d %d of %d, %d behind the end\n",
			r.wire, name, r.text, r.calls, r.echoed, r.marks, usage, r.errors, r.limits, r.cuts, (r.bytes+*cutStep-1)/(*cutStep), r.overflow)
	}
	t.Log("every ", *cutStep, " bytes\n", out.String())
}

// converse makes a model think, call two tools at once, take their results and answer.
func (r *row) converse(t *testing.T) {
	s := modeltest.Start(t,
		modeltest.Turn{Reasoning: "I look first. ", Text: "Let me look.", Calls: []modeltest.Call{
			{ID: "call_first", Name: "grep", Arguments: `{"pattern":"a"}`}, {ID: "call_second", Name: "grep", Arguments: `{"pattern":"b"}`},
		}},
		modeltest.Turn{Text: "It is in a.go.", Length: true})
	c, _ := opened(t, r.model, s.URL)
	q := &model.Request{System: []string{"You answer.", "Today."}, Tools: tools, Messages: question("Where is it?"), CacheKey: "thread"}
	a, err := c.Answer(t.Context(), q, func(model.Event) {})
	if err != nil {
		t.Fatalf("%v; refused: %q", err, s.Refused())
	}
	calls := a.Message.Calls()
	r.text, r.calls, r.usage = len(a.Message.Text()), len(calls), a.Usage
	if r.calls != 2 || r.text != len("Let me look.") || r.usage.Input != 120 || r.usage.Cached != 80 || r.usage.Output != 30 {
		t.Fatalf("%d calls, %q, %+v", r.calls, a.Message.Text(), a.Usage)
	}

	q.Messages = append(q.Messages, a.Message, model.Message{Role: model.User, Parts: []model.Part{
		{Result: &model.Result{ID: calls[0].ID, Name: "grep", Text: "a.go:1"}}, {Result: &model.Result{ID: calls[1].ID, Name: "grep", Text: "b"}},
	}})
	if a, err = c.Answer(t.Context(), q, func(model.Event) {}); err != nil {
		t.Fatalf("%v; refused: %q", err, s.Refused())
	}
	if a.Finish == model.Length {
		r.limits++
	} else {
		t.Errorf("an answer at its limit is %q", a.Finish)
	}

	second := s.Requests()[1]
	r.wire = second.Wire
	r.echoed = strings.Count(second.Raw, "c2lnbmF0dXJl")
	for _, mark := range []string{`"cache_control"`, `"cachePoint"`, `"prompt_cache_key"`} {
		r.marks += strings.Count(second.Raw, mark)
	}
	wants := map[string]int{"messages": 1, "converse": 1, "responses": 1}[r.wire] // in the request
	if r.marks < wants || r.marks > 4 {
		t.Errorf("%d marks for the cache", r.marks)
	}
}

// refuse gives a model each refusal.
func (r *row) refuse(t *testing.T) {
	for _, refusal := range []struct {
		status int
		body   string
		want   model.Kind
	}{
		{401, `{"error":{"message":"no"}}`, model.BadKey},
		{402, `{"error":{"message":"Insufficient Balance"}}`, model.NoCredit},
		{404, `{"error":{"message":"no such model"}}`, model.NoModel},
		{400, `{"message":"Input is too long for requested model.","error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}`, model.TooLong},
		{429, `{"error":{"message":"slow down"}}`, model.Limited},
		{503, `{"error":{"message":"busy"}}`, model.Overloaded},
	} {
		s := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(refusal.status, refusal.body)})
		c, _ := opened(t, r.model, s.URL)
		_, err := c.Answer(t.Context(), &model.Request{Messages: question("?")}, func(model.Event) {})
		if e := (*model.Error)(nil); !errors.As(err, &e) || e.Kind != refusal.want {
			t.Errorf("%d: %v, want %s", refusal.status, err, refusal.want)
			continue
		}
		r.errors++
	}
}

// cut cuts the answer at each byte: a part is never taken for the whole. After the last byte that
// matters there are marks that a client may ignore.
func (r *row) cut(t *testing.T) {
	var mu sync.Mutex
	at, size := -*cutStep, 0 // the first answer is complete
	s := modeltest.Play(t, func(*modeltest.Request) modeltest.Turn {
		return modeltest.Turn{
			Text:  "größe",
			Calls: []modeltest.Call{{ID: "abcdefghi", Name: "grep", Arguments: `{"pattern":"x"}`}},
			Fault: func(w http.ResponseWriter, stream []byte) {
				mu.Lock()
				n := at
				size = len(stream)
				mu.Unlock()
				if n < 0 {
					n = len(stream)
				}
				modeltest.CutAfter(n)(w, stream)
			},
		}
	})
	c, _ := opened(t, r.model, s.URL)
	answer := func() (*model.Answer, error) {
		return c.Answer(t.Context(), &model.Request{Tools: tools, Messages: question("?")}, func(model.Event) {})
	}
	want, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	whole := fmt.Sprint(want.Message.Text(), *want.Message.Calls()[0])

	for r.bytes = size; at+*cutStep < r.bytes; {
		mu.Lock()
		at += *cutStep
		n := at
		mu.Unlock()
		a, err := answer()
		e := (*model.Error)(nil)
		switch {
		case errors.As(err, &e) && e.Kind == model.Broken:
			r.cuts++
		case err != nil:
			t.Fatalf("cut after %d of %d bytes: %v", n, r.bytes, err)
		case len(a.Message.Calls()) != 1 || fmt.Sprint(a.Message.Text(), *a.Message.Calls()[0]) != whole:
			t.Fatalf("cut after %d of %d bytes: %+v was taken for the whole", n, r.bytes, a.Message)
		default:
			r.overflow++
		}
	}
	if r.overflow > r.cuts {
		t.Errorf("%d cuts of %d were not noticed", r.overflow, r.cuts+r.overflow)
	}
}
