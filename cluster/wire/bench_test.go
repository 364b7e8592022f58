package wire

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCall measures a call with a small request and answer over a real connection. cpu-us/op is
// the CPU time of both sides.
func BenchmarkCall(b *testing.B) {
	key := NewKey()
	a, peer := start(b, key, "c1", "a"), start(b, key, "c1", "b")
	in := make([]byte, 1000)
	peer.Handle("echo", func(context.Context, Peer, []byte) ([]byte, error) { return in[:500], nil })
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	began := cpuTime()
	for b.Loop() {
		if _, err := a.Call(ctx, peer.target(), "echo", in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-began).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportAllocs()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
