package shard

import (
	"reflect"
	"testing"
	"time"
)

// If Add or Sub leaves out a counter, the statistics of several shards, or of parts of a stream,
// are wrong.
func TestStats_AddAndSubCoverEveryField(t *testing.T) {
	t.Parallel()
	var one, two Stats
	fields := reflect.ValueOf(&one).Elem()
	others := reflect.ValueOf(&two).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(3 + i))
		others.Field(i).SetInt(int64(100 * (1 + i)))
	}

	sum := one
	sum.Add(two)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if got, want := reflect.ValueOf(sum).Field(i).Int(), int64(3+i+100*(1+i)); got != want {
			t.Errorf("Add: %s is %d, want %d", name, got, want)
		}
	}

	sum.Sub(two)
	if sum != one {
		t.Errorf("Sub after Add: %+v, want %+v", sum, one)
	}
}

// Parts that ran side by side may be longer than the whole: the remainder is never negative.
func TestStatsRemainder_isNeverNegative(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]time.Duration{{10, 4, 6}, {10, 10, 0}, {10, 14, 0}} {
		if got := remainder(c[0], c[1]); got != c[2] {
			t.Errorf("apart(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
