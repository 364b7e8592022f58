package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// advice matches forbidden advice: the data may be good, and moving it away is enough.
var advice = regexp.MustCompile(`(?i)\b(empty|delete|remove|erase|wipe|clear) (it|its|this|that|the|one of the) ?[a-z ]*\b(director(y|ies)|data|disk|raft|log|snapshots?)\b|\bempty (it|one of|and) |\bemptied (data )?director|\brm -r`)

func TestMessages_neverAdviseToDeleteData(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"empty the data directory to let this node join", "Empty it to let the node join", "delete its data directory",
		"wipe the disk", "rm -rf data", "without an emptied data directory", "remove the directory of one of them", "empty one of the two",
	} {
		if !advice.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}

	checked := 0
	eachText(t, func(path, text string) {
		checked++
		if advice.MatchString(text) {
			t.Errorf("%s: %q: advise to move the data away, and to keep it", path, text)
		}
	})
	if checked < 1000 {
		t.Errorf("only %d texts were looked at", checked)
	}
}

// takesAway matches a message that tells a user to take data out of use.
var takesAway = regexp.MustCompile(`(?i)\bmove\b[^.;]*\baway\b|accept the loss|say --accept-loss`)

// takingAway has these messages by a part of each: why the data cannot be used, and the test that
// causes the message.
var takingAway = map[string][2]string{
	"changes that only the lost nodes know":            {"a majority is lost for good, and the operator has to say so", "TestRecoverCommand_asksForConfirmation"},
	"Move the data directories of the others away":     {"the help of recover: the others belong to the cluster that was given up", "TestRestoredCluster_oldNodesStopAnswering"},
	"which was given up":                               {"an operator made another cluster of it", "TestRestoredCluster_oldNodesStopAnswering"},
	"to let this node join as a new one (":             {"a page of the log or a snapshot fails its checksum", "TestVerifyLog_detectsFlippedBits"},
	"the data directory was moved, copied or restored": {"the log misses entries that others have heard of", "TestOldDiskImage_neverLosesAcknowledgedWrites"},
	"went back in time":                                {"the log ends before what others have confirmed", "TestOldDiskImage_isDetected"},
	"another process has the identity":                 {"a second process runs on a copy, which is the one to go", "TestCopiedNode_isRefusedWhileTheOriginalRuns"},
	"is missing but %s is not empty":                   {"without its name a log belongs to no node", "TestNodeIdentity_lostOrDamagedFileIsRefused"},
	"put it back from a copy, or move":                 {"node.json is no JSON or names no node", "TestNodeIdentity_lostOrDamagedFileIsRefused"},
	"must not forget its votes":                        {"the log is gone", "TestDataDirectory_withoutItsLogIsRefused"},
	"it was removed; move":                             {"the cluster has removed the node", "TestRemoveNode_theRemovedNodeStopsWithAReason"},
	"the node was removed from the cluster":            {"the cluster has removed the node", "TestRemoveNode_theRemovedNodeStopsWithAReason"},
	"but %s is here: move":                             {"the node is bound to a cluster that is not this one, and holds nothing yet", "TestFormation_aNodePromisedToOneClusterJoinsNoOther"},
	"move this data directory away":                    {"the founder is lost before there was a cluster: the node holds nothing yet", "TestFormation_aNodePromisedToOneClusterJoinsNoOther"},
	"move one of the two away":                         {"the directory was copied, and the other one runs", "TestCopiedNode_isRefusedWhileTheOriginalRuns"},
	"it was rolled back or is a copy":                  {"the cluster knows later starts of the node", "TestCopiedDataDirectory_isRefused"},
	"and move its directory away":                      {"the directory was copied, and the other one runs", "TestHandshake_admitsOnlyMembersOfTheCluster"},
	"drain it, or accept the loss":                     {"the last copy would go, so the command is refused", "TestOperatorCommands_returnTheOutcomesOfTheirTable"},
	"which remembers what this node's file was":        {"a cache of one small file is no JSON; the configuration in force stays", "TestConfigurationMemory_unreadableFileIsReported"},
}

// Each message that tells a user to take data out of use has a test that causes it, and so shows
// that the data cannot be used.
func TestMessages_thatTellToMoveDataAwayHaveATest(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachText(t, func(path, text string) {
		if !takesAway.MatchString(text) {
			return
		}
		row := ""
		for part := range takingAway {
			if strings.Contains(text, part) {
				row, used[part] = part, true
			}
		}
		if row == "" {
			t.Errorf("%s: %q has no row: say why the data cannot be used, and name the test that shows it", path, text)
		}
	})
	tests := declared(sources(t))
	for part, row := range takingAway {
		if !used[part] {
			t.Errorf("no message says %q", part)
		}
		if !tests[row[1]] {
			t.Errorf("%q names the test %s, which is not there", part, row[1])
		}
	}
}

// eachText calls f with each text of the program.
func eachText(t *testing.T, f func(path, text string)) {
	t.Helper()
	for _, folder := range []string{"cluster", "cmd", "node", "api", "shard"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					text, _ := strconv.Unquote(l.Value)
					f(path, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecoverCommand_asksForConfirmation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := newRoot(func(string) string { return "" })
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"recover", "--data-dir", dir})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "say --accept-loss") {
		t.Errorf("recover says %v", err)
	}
}
