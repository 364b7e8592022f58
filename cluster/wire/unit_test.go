package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestParseKeys_readsKeysAndNeverPrintsThem(t *testing.T) {
	t.Parallel()
	a, b := NewKey(), NewKey()
	keys, err := ParseKeys([]byte("# issued in May\n" + a.Text() + "\r\n\n  " + b.Text() + " # the old one\n" + a.Text() + " # again"))
	if err != nil || len(keys) != 2 || keys[0] != a || keys[1] != b || !keys.Has(b) || keys.Has(NewKey()) {
		t.Errorf("%v, %v", keys, err)
	}
	for in, want := range map[string]string{
		"":                  "holds no key",
		"# none":            "holds no key",
		"abc":               "line 1: expected 64",
		"\n" + a.Text()[2:]: "line 2: expected 64",
		a.Text() + "\n" + b.Text() + "\n" + NewKey().Text() + "\n" + NewKey().Text() + "\n" + NewKey().Text(): "at most 4",
		a.Text() + "\n" + a.Text() + " x\n": "line 2: expected 64",
	} {
		if _, err := ParseKeys([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	if strings.Contains(a.String(), a.Text()[:8]) && a.Fingerprint() != a.Text()[:8] {
		t.Errorf("the key prints as %s", a)
	}
	if bytes.Equal(a.Derive("gossip", 32), a.Derive("seal", 32)) || bytes.Equal(a.Derive("gossip", 32), b.Derive("gossip", 32)) ||
		!bytes.Equal(a.Derive("gossip", 32), a.Derive("gossip", 32)) {
		t.Error("derived keys")
	}
}

func TestCertificate_carriesTheNodesIdentity(t *testing.T) {
	t.Parallel()
	for _, bad := range []Peer{{}, {Node: "a/b"}, {Node: "-"}, {Node: strings.Repeat("x", 101)}, {Cluster: "a b", Node: "x"}, {Cluster: "-", Node: "x"}} {
		if _, err := newRing(bad, Keys{NewKey()}, time.Now); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	p := Peer{Cluster: "0192aa-B_c", Node: "01J-x_Y", Epoch: 1<<64 - 1}
	r, err := newRing(p, Keys{NewKey()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.setCluster("a b"); err == nil || r.me() != p {
		t.Errorf("setCluster: %v, %+v", err, r.me())
	}
}

func TestFrames_areReadAsWrittenAndRefusedIfTooLarge(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		body := bytes.Repeat([]byte("a"), size)
		b := appendFrame(nil, chunkFrame, 7, body)
		f, err := readFrame(bytes.NewReader(b), 1<<20)
		if err != nil || f.kind != chunkFrame || f.call != 7 || !bytes.Equal(f.body, body) {
			t.Errorf("%d bytes: %d bytes, %v", size, len(f.body), err)
		}
		if _, err := readFrame(bytes.NewReader(b[:len(b)-1]), 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, cut: %v", size, err)
		}
		if size > 0 {
			if _, err := readFrame(bytes.NewReader(b), size-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes, over the bound: %v", size, err)
			}
		}
	}
	if _, err := readFrame(bytes.NewReader(nil), 1); err != io.EOF {
		t.Errorf("nothing: %v", err)
	}
	r := request{left: 3 * time.Second, method: "search", argument: []byte("in")}
	got, err := parseRequest(append(r.head(), r.argument...))
	if err != nil || got.left != r.left || got.method != r.method || string(got.argument) != "in" {
		t.Errorf("%+v, %v", got, err)
	}
	fail, err := parseError(errorBody(failure{kind: "busy", text: strings.Repeat("é", maxText), wait: time.Second}))
	if err != nil || fail.kind != "busy" || len(fail.text) > maxText || fail.wait != time.Second {
		t.Errorf("%s, %d bytes, %v, %v", fail.kind, len(fail.text), fail.wait, err)
	}
}

func FuzzReadFrame_framesAreReadAsWritten(f *testing.F) {
	f.Add(appendFrame(nil, requestFrame, 1, request{method: "m"}.head(), []byte("in")))
	f.Add(appendFrame(nil, errorFrame, 1, errorBody(failure{kind: "busy", text: "text"})))
	f.Add([]byte{255, 255, 255, 255, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := readFrame(bytes.NewReader(data), 1<<20)
		if err != nil {
			return
		}
		if again := appendFrame(nil, fr.kind, fr.call, fr.body); !bytes.HasPrefix(data, again) {
			t.Fatalf("%x is read as %x", data, again)
		}
		if r, err := parseRequest(fr.body); err == nil && r.left < 0 {
			t.Fatalf("request %+v", r)
		}
		if f, err := parseError(fr.body); err == nil && len(f.text) <= maxText && len(f.kind) <= maxKindName && f.kind != "" {
			if again, err := parseError(errorBody(f)); err != nil || again != f {
				t.Fatalf("error %+v of %q is read again as %+v, %v", f, fr.body, again, err)
			}
		}
	})
}

func TestConnectionPool_forgetsUnusedNodes(t *testing.T) {
	t.Parallel()
	p := newPool(time.Minute)
	k := poolKey{Target: Target{"n", "addr"}, proto: Call}
	for range MaxCallsToNode {
		if err := p.acquireSlot(context.Background(), k); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.acquireSlot(ctx, k); !errors.Is(err, context.Canceled) {
		t.Errorf("one call too many: %v", err)
	}
	p.closeIdle()
	if len(p.nodes) != 1 {
		t.Error("a node in use is forgotten")
	}
	for range MaxCallsToNode {
		p.releaseSlot(k)
	}
	p.closeIdle()
	if len(p.nodes) != 0 {
		t.Error("an unused node is kept")
	}
}

func TestKeys_openOnlyWhatTheySealedForThatPurpose(t *testing.T) {
	t.Parallel()
	a, b := NewKey(), NewKey()
	sealed, err := Keys{a}.Seal("hmac", []byte("secret"))
	if err != nil || bytes.Contains(sealed, []byte("secret")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if plain, err := (Keys{b, a}).Open("hmac", sealed); err != nil || string(plain) != "secret" {
		t.Errorf("%q, %v", plain, err)
	}
	if _, err := (Keys{a}).Open("other", sealed); err == nil {
		t.Error("another purpose opens it")
	}
	if _, err := (Keys{b}).Open("hmac", sealed); err == nil {
		t.Error("another key opens it")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := (Keys{a}).Open("hmac", sealed); err == nil {
		t.Error("it is opened although it is damaged")
	}
	if _, err := (Keys{}).Seal("hmac", nil); err == nil {
		t.Error("sealed without a key")
	}
}

// The frames of the last release are read and written byte by byte; the first two are the example
// in the comment of type frame. A kind of a later release is refused.
func TestFrames_ofTheLastReleaseAreReadAndWritten(t *testing.T) {
	t.Parallel()
	ping := request{left: time.Second, method: "ping"}
	busy := failure{kind: "busy", text: "wait", wait: 1500 * time.Millisecond}
	for want, f := range map[string]frame{
		"0f0000000101000000" + "40420f0000000000" + "0470696e67" + "6869": {requestFrame, 1, append(ping.head(), "hi"...)},
		"0200000003010000006f6b": {responseFrame, 1, []byte("ok")},
		"000000000207000000":     {cancelFrame, 7, []byte{}},
		"0e0000000407000000" + "096275737920" + "31353030" + "77616974": {errorFrame, 7, errorBody(busy)},
		"0300000005010000006d6f72":                                      {chunkFrame, 1, []byte("mor")},
		"000000000601000000":                                            {endFrame, 1, []byte{}},
	} {
		if got := hex.EncodeToString(appendFrame(nil, f.kind, f.call, f.body)); got != want {
			t.Errorf("kind %d is written as %s, want %s", f.kind, got, want)
		}
		data, err := hex.DecodeString(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readFrame(bytes.NewReader(data), 1<<10); err != nil || got.kind != f.kind || got.call != f.call || !bytes.Equal(got.body, f.body) {
			t.Errorf("%s is read as %+v, %v", want, got, err)
		}
	}
	if got, err := parseError(errorBody(busy)); err != nil || got != busy {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readFrame(bytes.NewReader(appendFrame(nil, lastFrame+1, 1)), 1<<10); !errors.Is(err, errFrame) {
		t.Errorf("a kind of a later release: %v", err)
	}
}

// The reader may see the cancel frame of a call as soon as it has passed on the request, before the
// call has a context.
func TestServer_cancelBeforeTheCallStartsEndsIt(t *testing.T) {
	t.Parallel()
	s := &server{}
	for _, call := range []uint32{1, 2} {
		s.markBegun()
		s.cancelCall(call)

		ctx, end := s.startCall(t.Context(), frame{call: call}, 0)
		if ctx.Err() == nil {
			t.Errorf("call %d goes on though nobody waits for it", call)
		}
		end()
	}

	// It affects neither the next call, nor one whose cancel comes late.
	ctx, end := s.startCall(t.Context(), frame{call: 3}, 0)
	s.cancelCall(2)
	if ctx.Err() != nil {
		t.Error("a call ended by the cancel of another")
	}
	end()
}
