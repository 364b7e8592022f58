package change

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// costQueries are the questions of the bench part `history`.
var costQueries = []string{
	"type:diff added:TODO", "type:diff added:FIXME", "type:diff added:deprecated", "type:diff added:nowhere_at_all", "type:diff added:password",
	"type:commit (added:timeout or removed:timeout)", "type:commit (added:mutex or removed:mutex)", "type:commit (added:retry or removed:retry)",
	"type:commit (added:utf8 or removed:utf8)", "type:commit (added:nowhere_at_all or removed:nowhere_at_all)",
	"type:commit message:revert", "type:commit message:fix", "type:commit message:security", "type:commit message:CVE", "type:commit message:release", "type:commit message:nowhere_at_all",
	"type:diff removed:deprecated", "type:diff the", "type:diff return", `type:diff "if err != nil"`, "type:diff added:import file:test", "type:diff -added:import file:test",
	"type:diff lang:python added:raise removed:return", `type:diff file:\.md$ added:http`, "type:commit author:a since:2015 fix", "type:commit author:smith",
	"type:commit merge:only message:merge", "type:commit since:2020-01 until:2020-06 fix", "type:commit fix -message:typo file:src",
}

// It asks the mirrors of SHOAL_CHANGES_MIRRORS. SHOAL_CHANGES_LOGS is a folder that keeps their logs, and
// SHOAL_CHANGES_REPEAT how often each question is asked.
func BenchmarkQuestionsOfMirrors(b *testing.B) {
	var logs []*Log
	for _, dir := range strings.Fields(os.Getenv("SHOAL_CHANGES_MIRRORS")) {
		head, _ := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
		m := git.Open(dir)
		l := Open(filepath.Join(os.Getenv("SHOAL_CHANGES_LOGS"), filepath.Base(filepath.Dir(dir))))
		if err := l.Update(b.Context(), m, []Tip{{"HEAD", strings.TrimSpace(string(head))}}, Bound{All: true}, time.Now(), noPause); err != nil {
			b.Fatal(err)
		}
		m.Close()
		defer l.Close()
		logs = append(logs, l)
	}
	repeat, _ := strconv.Atoi(os.Getenv("SHOAL_CHANGES_REPEAT"))
	all := 0.0
	for _, text := range costQueries {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		once := func() (total, told int) {
			return askLogs(b, logs, LogSearch{Q: q.Q, Diff: q.Type == query.DiffType, Limit: 50})
		}
		once()
		began := cpu()
		total, told := 0, 0
		for range max(1, repeat) {
			total, told = once()
		}
		ms := 1000 * (cpu() - began) / float64(max(1, repeat))
		all += ms
		fmt.Printf("%-70s %6d %4d %8.2f ms\n", text, total, told, ms)
	}
	fmt.Printf("mean %.2f ms\n", all/float64(len(costQueries)))
}

// askLogs asks some logs as a node does, and returns how much was counted and told.
func askLogs(b *testing.B, logs []*Log, req LogSearch) (total, told int) {
	var readers []*LogReader
	req.Patterns = &Patterns{}
	for _, l := range logs {
		r, err := l.Reader(req)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	ReadLogs(context.Background(), readers, req)
	for _, r := range readers {
		out, err := r.Result(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		total, told = total+out.Total, told+len(out.Commits)
	}
	return total, told
}
