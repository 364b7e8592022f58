package match

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkCount counts matches in the text that SHOAL_MATCH_TEXT names, or in a small one.
func BenchmarkCount(b *testing.B) {
	text := []byte("static int foo(struct bar *b)\n{\n\treturn mutex_lock(&b->lock);\n}\n")
	if name := os.Getenv("SHOAL_MATCH_TEXT"); name != "" {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		expr string
		o    Options
	}{
		{"kzalloc_node_failed_xyz", Options{Literal: true}},
		{"struct workqueue_struct", Options{Literal: true}},
		{"return", Options{Literal: true, Fold: true}},
		{"if", Options{Literal: true, Fold: true}},
		{"->x", Options{Literal: true}},
		{"todo", Options{Literal: true, Fold: true}},
		{"spin_lock_irqsave", Options{Literal: true, Fold: true}},
		{`ext4_[a-z]+_inode`, Options{}},
		{`(kmalloc|kzalloc)\(sizeof`, Options{}},
		{`struct [a-z_]+_operations`, Options{}},
		{`spin_(un)?lock_irqsave\(&[a-z]+->lock`, Options{}},
		{`[a-z]+_lock\(`, Options{}},
		{`\bv[0-9]+\.[0-9]+\.[0-9]+\b`, Options{}},
		{`[0-9]{8}`, Options{}},
		{`[A-Z]{20,}`, Options{}},
		{`copyright.*google`, Options{Fold: true}},
		{`fixme|xxx|hack`, Options{Fold: true}},
		{`^#define [A-Z]+_MAX`, Options{}},
		{`^}$`, Options{}},
		{`\b[a-z]+[0-9]+[a-z]+\b`, Options{}},
		{`[A-Z][a-z]+[A-Z][a-z]+`, Options{}},
		{`\([a-z]+, [a-z]+\)`, Options{}},
		{`[a-z]+ = [a-z]+\[[0-9]+\]`, Options{}},
		{`\bint [a-z]+;`, Options{}},
		{`[^ \t\n]{80,}`, Options{}},
		{`(a|b)*c[0-9]{3,5}(x|y)`, Options{}},
		{`0x[0-9a-f]{8}`, Options{}},
		{`".*%[0-9]+d.*"`, Options{}},
		{`^\s*[a-z_]+:$`, Options{}},
		{`error|warn|fail|abort`, Options{}},
		{`\w+\s*\(\)`, Options{}},
	} {
		b.Run(fmt.Sprint(c.expr, c.o.Fold), func(b *testing.B) {
			m, err := Compile(c.expr, c.o)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			n := 0
			for b.Loop() {
				n = m.Count(text)
			}
			b.ReportMetric(float64(n), "matches")
		})
	}
}
