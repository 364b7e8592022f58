package node

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/shard/git"
)

// warnings returns the problems that an operator should solve, one sentence each, for the status.
func (n *Node) warnings(view *catalog.View, t *hold.Tally) []string {
	var out []string
	for _, w := range view.File().Warnings {
		out = append(out, "configuration: "+w.Error())
	}

	out = append(out, view.UnusedGlobs()...)

	if n.noGit != "" {
		out = append(out, n.noGit)
	}
	if n.tags.warning != "" {
		out = append(out, n.tags.warning)
	}

	for _, w := range []string{unindexedRevisionsWarning(view, t), emptiedReposWarning(view, t), unknownSymbolsWarning(view, n.jobs.Symbols.Unknown())} {
		if w != "" {
			out = append(out, w)
		}
	}

	for c := range view.Connections() {
		if text := operate.Refusal(c); text != "" {
			out = append(out, fmt.Sprintf("connection %s: %s; `shoal connection list` has what to do", c.Name, text))
		}
	}

	members := n.cluster.Members()
	if text := n.cluster.OtherKey(); text != "" {
		out = append(out, text)
	}
	if age := n.cluster.Age(); n.cluster.Leader() == "" {
		out = append(out, leaderlessText(members, age))
	} else {
		out = append(out, deadMemberWarnings(members)...)
		if age > lagging {
			out = append(out, "this node hears the leader and has not caught up with it"+withAge(", its catalog is of ", age)+": look at its disk and at the network between the two")
		}
	}

	if slices.ContainsFunc(members, func(m cluster.Member) bool { return m.Alive && m.Load.Disputed }) {
		out = append(out, "the catalogs of the nodes differ, and no majority has the same one: searches go on, changes are refused; docs/upgrade.md says what to do")
	}
	if text := n.cluster.Replaced(); text != "" {
		out = append(out, text+"; look at the versions of the nodes")
	}

	if _, id, began := n.jobs.Poller.Polls(); !began.IsZero() {
		out = append(out, slowFetchWarning(view.Repo(id), n.opt.Now().Sub(began))...)
	}

	for _, w := range []string{differentReplicasWarning(members), differentKeysWarning(members), differentClocksWarning(n.cluster.Self(), members)} {
		if w != "" {
			out = append(out, w)
		}
	}
	if old := oldBackupWarning(members, n.opt.Now(), n.opt.BackupAge); old != "" {
		out = append(out, old+": look at the timer that makes them, or run `shoal snapshot save FILE`")
	}
	for _, m := range members {
		if m.Alive && m.Load.DiskUsed >= hold.DiskFull {
			out = append(out, fullVolumeWarning(cluster.Called(m.Name, m.ID), int(m.Load.DiskUsed)))
		}
	}
	return out
}

// unknownSymbolsWarning names a repository with files that ctags failed on; "" means there is none.
func unknownSymbolsWarning(view *catalog.View, unknown map[catalog.RepoID]int) string {
	var names []string
	for id := range unknown {
		if repo := view.Repo(id); repo != nil {
			names = append(names, repo.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	first := slices.Min(names)
	return fmt.Sprintf("the symbols of %s in %s, as %s, are not known: ctags failed on them; they are tried again, at once with `shoal repo reindex %s`",
		catalog.Counted(sumOf(unknown), "file", "files"), catalog.Counted(len(names), "repository", "repositories"), first, first)
}

func sumOf(counts map[catalog.RepoID]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// permissionWarnings lists the hosts at which people see less than they should, and what to do.
func permissionWarnings(s *job.PermissionState) (out []string) {
	for _, h := range s.Hosts {
		// Hidden repositories come first, then questions that fail without consequences so far.
		if n := h.Repos.Ended; n > 0 {
			out = append(out, fmt.Sprintf("repositories of %s that are hidden from who may read them there, since it has not said for too long who that is: %d; `shoal jobs list --kind repo_permissions` has why", h.Host, n))
		}
		if n := h.People.Ended; n > 0 {
			out = append(out, fmt.Sprintf("people whose list of repositories at %s counts no more, since the host has not answered for too long: %d; `shoal jobs list --kind account_permissions` has why", h.Host, n))
		}

		if n := h.People.Refused; n > 0 {
			out = append(out, fmt.Sprintf("people whom %s lets in no more: %d; they have to link their accounts again, `shoal jobs list --kind account_permissions` has its words", h.Host, n))
		}

		if n := h.Repos.Failing + h.People.Failing; n > 0 {
			out = append(out, fmt.Sprintf("%s does not say who may read what, the last answers count until they are too old; questions that fail: %d", h.Host, n))
		}
	}
	return out
}

// unindexedRevisionsWarning names repositories that have more revisions than are indexed.
func unindexedRevisionsWarning(view *catalog.View, t *hold.Tally) string {
	var names []string
	for it := t.LeftOut.Iterator(); it.HasNext(); {
		r := view.Repo(it.Next())
		names = append(names, fmt.Sprintf("%s (%d left out)", r.Name, r.LeftOut))
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("more branches and tags are asked for than the %d that are indexed besides HEAD: %s; narrow revisions of their connections", git.MaxRevisions, operate.FirstFew(names))
}

// emptiedReposWarning names repositories that lost all their commits although their host does not call them
// empty. They are not searched any more.
func emptiedReposWarning(view *catalog.View, t *hold.Tally) string {
	var names []string
	for it := t.Emptied.Iterator(); it.HasNext(); {
		names = append(names, view.Repo(it.Next()).Name)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the last fetch found no branch and no tag in %s: nothing of it is searched until its remote has a commit", operate.FirstFew(names))
}

// fetchPatience is how long a fetch may take before a warning. Most end within a second; much new
// history takes longer.
const fetchPatience = 20 * time.Second

// slowFetchWarning warns about a host that may hang. A fetch that only looks for new commits is no job,
// so no list of jobs shows it.
func slowFetchWarning(repo *catalog.Repo, taken time.Duration) []string {
	if repo == nil || taken < fetchPatience {
		return nil
	}
	return []string{fmt.Sprintf("%s is being fetched for %s; until its host sends everything or is given up, its last index is searched", repo.Name, taken.Round(time.Second))}
}

// differentReplicasWarning warns that the number of copies depends on which node leads; "" means all
// nodes agree.
func differentReplicasWarning(members []cluster.Member) string {
	wanted := map[uint32][]string{}
	for _, m := range members {
		// Zero means that the node has not reported yet.
		if m.Alive && m.Load.Replicas > 0 {
			wanted[m.Load.Replicas] = append(wanted[m.Load.Replicas], cluster.Called(m.Name, m.ID))
		}
	}
	if len(wanted) < 2 {
		return ""
	}

	var each []string
	for _, copies := range slices.Sorted(maps.Keys(wanted)) {
		each = append(each, fmt.Sprintf("%d on %s", copies, operate.FirstFew(wanted[copies])))
	}
	return "nodes were started with different --replicas, and that of the leader counts: " + strings.Join(each, ", ") + "; start all with the same"
}

// differentKeysWarning says which nodes accept which cluster keys, "" where all accept the same one.
// Also a node that is away counts, as it was last heard of: it needs the new key to come back.
func differentKeysWarning(members []cluster.Member) string {
	nodes := map[string][]string{}
	several := false
	for _, m := range members {
		// The keys of a node are unknown if it has not reported, or has an earlier version.
		if keys := m.Load.Keys; keys != "" {
			nodes[keys] = append(nodes[keys], cluster.Called(m.Name, m.ID))
			several = several || strings.Contains(keys, " ")
		}
	}
	if len(nodes) < 2 && !several {
		return ""
	}

	var each []string
	for _, keys := range slices.Sorted(maps.Keys(nodes)) {
		each = append(each, fmt.Sprintf("%s on %s", strings.ReplaceAll(keys, " ", " and "), operate.FirstFew(nodes[keys])))
	}
	return "the change of the cluster key is not finished: " + strings.Join(each, ", ") + "; go on with docs/how-to/rotate-keys.md"
}

// oldBackupWarning says how old the newest back-up of any node is, "" where it is not old or there
// never was one.
func oldBackupWarning(members []cluster.Member, now time.Time, maxAge time.Duration) string {
	var newest time.Time
	for _, m := range members {
		if m.Load.Backup.After(newest) {
			newest = m.Load.Backup
		}
	}
	age := now.Sub(newest)
	if maxAge == 0 || newest.IsZero() || age < maxAge {
		return ""
	}
	text := catalog.Counted(int(age.Hours()), "hour", "hours")
	if days := int(age.Hours() / 24); days > 1 {
		text = catalog.Counted(days, "day", "days")
	}
	return "the newest back-up of the catalog is " + text + " old"
}

// restartTime is how long a node may be away before somebody should look at it.
const restartTime = time.Minute

// deadMemberWarnings says what to do about each node that does not answer.
func deadMemberWarnings(members []cluster.Member) (out []string) {
	for _, m := range members {
		away := clock.Since(m.Since).Round(time.Second)
		if m.Alive || away < restartTime {
			continue
		}

		text := fmt.Sprintf("node %s has been dead for %s", cluster.Called(m.Name, m.ID), away)
		i := slices.IndexFunc(members, func(o cluster.Member) bool {
			return o.Alive && o.Number > m.Number && (o.Addr == m.Addr || o.Name == m.Name && m.Name != "")
		})
		if i >= 0 {
			text += " and was replaced by " + cluster.Called(members[i].Name, members[i].ID) + ": `shoal remove " + m.ID + "`"
		} else {
			text += ": start it, or `shoal remove " + m.ID + "` if its machine is gone for good"
		}
		out = append(out, text)
	}
	return out
}

// differentVersionsText names the versions of the nodes that answer; "" means there is one.
func differentVersionsText(members []cluster.Member) string {
	versions := map[string]bool{}
	for _, m := range members {
		if m.Alive && m.Version != "" {
			versions[m.Version] = true
		}
	}
	if len(versions) < 2 {
		return ""
	}
	return "the upgrade is not finished, nodes run " + strings.Join(slices.Sorted(maps.Keys(versions)), " and ")
}

// urgentProblems lists problems for the first sentence of a status, other than missing nodes.
func (n *Node) urgentProblems() (out []string) {
	members := n.cluster.Members()
	if dead := len(deadMemberWarnings(members)); dead > 0 {
		out = append(out, countedNodes(dead)+" "+silentNodesText(dead))
	}
	if differentKeysWarning(members) != "" {
		out = append(out, "the change of the cluster key is not finished")
	}
	if old := oldBackupWarning(members, n.opt.Now(), n.opt.BackupAge); old != "" {
		out = append(out, old)
	}
	return out
}

// differentClocksWarning names the nodes whose clocks differ from this node's; "" means none.
func differentClocksWarning(self string, members []cluster.Member) string {
	var others []string
	for _, m := range members {
		if !m.Alive || m.Ahead.Abs() < cluster.ClockSlack {
			continue
		}
		way := "ahead"
		if m.Ahead < 0 {
			way = "behind"
		}
		others = append(others, fmt.Sprintf("%s is %s %s", cluster.Called(m.Name, m.ID), m.Ahead.Abs().Round(time.Second), way))
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("clocks differ; beside that of node %s: %s; what most nodes say counts, set the others right", self, operate.FirstFew(others))
}

// fullVolumeWarning says what a node cannot do because its volume is this full, in percent.
func fullVolumeWarning(id string, used int) string {
	effect := "the node is given no more data"
	if used >= hold.DiskStop {
		effect = "nothing more is copied to the node or built on it"
	}
	return fmt.Sprintf("the volume of node %s is %d %% full: %s until space is made below its data directory, or elsewhere on the volume", id, used, effect)
}

// volumeLog logs when a volume becomes too full for some work, and when it has room again.
type volumeLog struct {
	log   *slog.Logger
	dir   string
	limit int // of hold, at or above which the volume was; 0 if it had room
}

// note takes how full the volume of this node is, in percent.
func (v *volumeLog) note(id string, used int) {
	limit := 0
	for _, l := range []int{hold.DiskFull, hold.DiskStop} {
		if used >= l {
			limit = l
		}
	}
	if limit == v.limit {
		return
	}
	v.limit = limit
	if limit > 0 {
		v.log.Warn(fullVolumeWarning(id, used), "dir", v.dir)
	} else {
		v.log.Info("the volume has room again", "dir", v.dir, "used", used)
	}
}

// lagging is the catalog age at which an operator should look.
const lagging = 30 * time.Second

// withAge returns the words and the age of a catalog; "" if the age is unknown.
func withAge(words string, age time.Duration) string {
	if age == cluster.UnknownAge {
		return ""
	}
	return fmt.Sprintf("%s%s ago", words, age.Round(time.Second))
}

// leaderlessText says what works without a leader, and names the silent nodes.
func leaderlessText(members []cluster.Member, age time.Duration) string {
	if len(members) == 0 {
		return "this node is not part of a cluster yet: its log says what it waits for"
	}
	out := "there is no leader: searches go on" + withAge(" with the catalog of ", age) + ", changes wait"
	var silent []string
	for _, m := range members {
		if !m.Alive {
			silent = append(silent, fmt.Sprintf("%s at %s", cluster.Called(m.Name, m.ID), m.Addr))
		}
	}
	if len(silent) > 0 {
		out += "; nothing is heard of " + operate.FirstFew(silent)
	}
	return out
}

// warn adds a warning.
func (out *StatusResponse) warn(text string, args ...any) {
	out.Warnings = append(out.Warnings, fmt.Sprintf(text, args...))
}
