package call

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// A call carries the id of its request, with Whole or without. A node of the previous release,
// which knows no ids, decodes the request as before.
func TestRequestID_travelsWithACall(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		for _, id := range []string{"", "r-1"} {
			net, method := far{}, To[question, reply]("square")
			method.whole = whole
			var arrived string
			method.Serve(net, func(ctx context.Context, q *question) (*reply, error) {
				arrived = RequestOf(ctx)
				return &reply{q.Number * q.Number}, nil
			})
			ctx := WithRequest(t.Context(), id)
			if got, err := method.Ask(ctx, net, "other", &question{3}); err != nil || got.Square != 9 || arrived != id {
				t.Errorf("whole %v, id %q: %v, %v, and %q arrived", whole, id, got, err, arrived)
			}

			in, err := method.questions.encode(method.messageParts(ctx, &question{3})...)
			if err != nil {
				t.Fatal(err)
			}
			var q question
			type partsBefore struct {
				Release string
				Fields  []string
			}
			behind := new(partsBefore)
			later := []any{behind}
			if !whole {
				later = nil
			}
			if err := codecOf[question]().decode(in, &q, later...); err != nil || q.Number != 3 || whole != (behind.Release != "") {
				t.Errorf("whole %v, id %q: an earlier node reads %+v with %+v: %v", whole, id, q, behind, err)
			}
		}
	}
}

func TestSlowCall_isLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx := WithRequest(t.Context(), "r-1")
		slow := Slow{After: time.Second, Log: slog.New(slog.NewTextHandler(&out, nil))}
		began := clock.Now()
		Slow{}.Done(ctx, "nothing", began)
		slow.Done(ctx, "quick work", began)
		time.Sleep(time.Second) // in the bubble's time
		slow.Done(ctx, "search", began, "shards", 3)
		if got := out.String(); !strings.Contains(got, `msg="slow search" request=r-1 took=1s shards=3`) || strings.Count(got, "\n") != 1 {
			t.Errorf("the log has\n%s", got)
		}
	})
}
