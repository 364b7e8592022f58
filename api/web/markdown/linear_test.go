package markdown_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/web/markdown"
)

// Marks of containers by the hundred thousand are refused at once: the parser takes
// time by the square of their number.
func TestRender_refusesDeepNestingAtOnce(t *testing.T) {
	const levels = 260_000
	repeat := func(parts ...string) string {
		var b strings.Builder
		for i := 0; i < levels; i++ {
			b.WriteString(parts[i%len(parts)])
		}
		return b.String() + "x\n"
	}
	for name, source := range map[string]string{
		"items": repeat("- "), "quotes": repeat("> "), "quotes without blanks": repeat(">"), "mixed": repeat("> ", "- "), "more mixed": repeat(">", "* ", "+ "), "tabs": repeat("-\t"),
		"numbers": repeat("1. ")[:500<<10], "numbers in brackets": repeat("1) ")[:500<<10], "many blanks": repeat(" ", "> "), "longer numbers": repeat("123456789. ")[:500<<10],
		"a rule behind": repeat("> ")[:levels] + strings.Repeat("- ", 1000), "further down": "# A\n\ntext\n\n" + repeat("- ")[:500<<10] + "x",
	} {
		began := spent()
		_, err := markdown.Render(context.Background(), []byte(source[:min(len(source), 512<<10)]), site())
		if took := spent() - began; !errors.Is(err, markdown.ErrDeep) || took > 50*time.Millisecond {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// What only looks like deep nesting is drawn.
func TestRender_doesNotTakeRulesAndTablesForNesting(t *testing.T) {
	t.Parallel()
	for _, source := range []string{strings.Repeat("- ", 300), strings.Repeat("* ", 300), "> " + strings.Repeat("- ", 300), strings.Repeat("> ", 60) + "x", strings.Repeat("-", 300), "1.2.3.4.5\n", strings.Repeat("1.", 300), strings.Repeat("|", 300)} {
		draw(t, site(), source)
	}
}

// signs are what documents are made of that means something.
var signs = []string{
	"*", "**", "_", "__", "~", "~~", "`", "``", "[", "]", "![", "](", "](a)", "](<", "[a]", "[a]: b\n", "[a]:", "(", ")", "<", ">", "</", "<a ", "<a href=\"", "<b>", "</b>", "<p>", "</p>", "<div>", "</div>", "<!--", "-->", "<?", "<![CDATA[",
	"<table>", "<tr>", "<td>", "<th>", "</table>", "<h1>", "</h1>", "<a href=x>", "</a>", "<li>", "<ul>", "<input>", "<pre>", "<code>", "&", "&amp;", "&#", "&#x1;", "&lt", "\\", "\\*", "|", "|-|", "|a|\n|-|\n", "\n", "\n\n", " ", "    ", "\t", "a", "é", "\x00", "\x01", "\r\n",
	"- ", "* ", "1. ", "> ", "# ", "```\n", "~~~\n", "---\n", "===\n", "- [ ] ", "http://a.b", "www.a", "a@b.c", "mailto:", ":", "!", "\"", "'", "[^1]", "[^1]: ", "$", "@", "//",
}

// Time grows as the length does, whatever the text: eight times the length takes far
// less than 64 times as long. Refusals count as answers. SHOAL_HOSTILE is how many
// texts more are drawn at random, instead of 20.
func TestRender_timeIsLinearInTheLength(t *testing.T) {
	random, tries := rand.New(rand.NewPCG(1, 2)), 20
	if n, err := strconv.Atoi(os.Getenv("SHOAL_HOSTILE")); err == nil {
		tries = n
	}
	patterns := append(slices.Clone(signs), "\\```\n<code>|", "\\```\n", "a`b\n``c\n")
	for range tries {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteString(signs[random.IntN(len(signs))])
		}
		patterns = append(patterns, b.String())
	}

	const length = 8 << 10
	for i, p := range patterns {
		before := []string{"", strings.Repeat("[", 50), strings.Repeat("<b>", 50), "a\n\n"}[i%4]
		fill := func(n int) string { return before + strings.Repeat(p, n/len(p)) + strings.Repeat("]", n/8) }
		small := took(fill(length))

		// The collector of memory counts, too, so a single look says little.
		slow := func() bool {
			large := took(fill(8 * length))
			return large > 100*time.Millisecond && large > 30*small
		}
		times := 0
		for times < 4 && slow() {
			times++
		}
		if times == 4 {
			t.Errorf("%q: %v for %d bytes and more than 30 times as much for 8 times as many", p, small, length)
		}
	}
}

// spent is the processor time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// took is how much processor time a document takes, without the clock that would
// end it. Others on the machine do not count.
func took(source string) time.Duration {
	began := spent()
	_, _ = markdown.Render(context.Background(), []byte(source), site())
	return spent() - began
}
