package seal

import (
	"context"
	"errors"
	"testing"
)

func secrets(_ context.Context, name string) ([]byte, error) { return []byte("secret of " + name), nil }

// What is sealed opens at every node of the cluster, for its own use, and
// nowhere else.
func TestWhatIsSealedOpensForItsUseAlone(t *testing.T) {
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
