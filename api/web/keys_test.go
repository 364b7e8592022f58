package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// badKeys lists keys, and fails to change them.
type badKeys struct{ err error }

func (k badKeys) CreateKey(context.Context, account.Holder, account.CreateKeyRequest) (*account.CreateKeyResponse, error) {
	return nil, k.err
}

func (k badKeys) RevokeKey(context.Context, account.Holder, account.RevokeKeyRequest) (*account.RevokeKeyResponse, error) {
	return nil, k.err
}

func (k badKeys) Keys(context.Context, account.Holder, account.KeysRequest) (*account.KeysResponse, error) {
	return &account.KeysResponse{}, nil
}

// What the form can mend stands beside it, with the status of its kind; other
// failures are for the edge, which knows what to say of each.
func TestAFailureOfTheFormOfKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int // of the page with the form; 0 for an error
	}{
		{call.Fail(call.ErrInvalid, "said"), 400},
		{call.Fail(call.ErrExists, "said"), 400},
		{call.Fail(call.ErrNotFound, "said"), 404},
		{call.Fail(call.ErrNoLeader, "said"), 0},
		{call.Fail(call.ErrOverloaded, "said"), 0},
		{call.Fail(call.ErrForbidden, "said"), 0},
		{errors.New("said"), 0},
	} {
		for _, field := range []string{"name", "revoke"} {
			p := New(Deps{Keys: badKeys{err: c.err}, Now: time.Now})
			v := &layout.Visit{
				Method: "POST", Viewer: catalog.Operator(), Form: map[string][]string{field: {"x"}}, Status: 200,
				Sent: func(name string) string { return map[string]string{"Sec-Fetch-Site": "same-origin"}[name] },
			}

			err := p.keyring.keys(t.Context(), v)
			if c.status == 0 && !errors.Is(err, c.err) {
				t.Errorf("%s, %v: %d, %v", field, c.err, v.Status, err)
			}
			if c.status != 0 && (err != nil || v.Status != c.status || !strings.Contains(string(v.Body), `role="alert">said`)) {
				t.Errorf("%s, %v: %d, %v, %s", field, c.err, v.Status, err, v.Body)
			}
		}
	}
}
