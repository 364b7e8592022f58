package seal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func secrets(_ context.Context, name string) ([]byte, error) { return []byte("secret of " + name), nil }

// What a node seals, all nodes of the cluster can open, for the same use only.
func TestSealedBox_opensOnlyForItsUse(t *testing.T) {
	t.Parallel()
	ctx, here := t.Context(), New("a", "thing", secrets)
	sealed, err := here.Seal(ctx, []byte("text"), "use")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := New("a", "thing", secrets).Open(ctx, sealed, "use"); err != nil || string(got) != "text" {
		t.Errorf("another node opens %q, %v", got, err)
	}
	if again, _ := here.Seal(ctx, []byte("text"), "use"); string(again) == string(sealed) {
		t.Error("the same is sealed alike: whoever reads the catalog sees that it is the same")
	}
	for what, open := range map[string]func() ([]byte, error){
		"another use":    func() ([]byte, error) { return here.Open(ctx, sealed, "other") },
		"another secret": func() ([]byte, error) { return New("b", "thing", secrets).Open(ctx, sealed, "use") },
		"changed bytes":  func() ([]byte, error) { return here.Open(ctx, append([]byte{sealed[0] ^ 1}, sealed[1:]...), "use") },
		"nothing at all": func() ([]byte, error) { return here.Open(ctx, nil, "use") },
		"a node too young": func() ([]byte, error) {
			return New("a", "thing", func(context.Context, string) ([]byte, error) { return nil, errors.New("not yet") }).Open(ctx, sealed, "use")
		},
	} {
		if got, err := open(); err == nil {
			t.Errorf("%s opens %q", what, got)
		}
	}
}

// The secret is not available. Each caller waits only for its own time, however many wait.
func TestSealedBox_waitForTheSecretEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box := New("a", "thing", func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})

		began := time.Now()
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := box.Seal(ctx, []byte("text"), "use"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
			})
		}
		waiting.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("they have waited for %v", took)
		}
	})
}
