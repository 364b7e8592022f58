package chaostest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hosts are the machines of a run. Each has an address that the test can reach.
type hosts struct {
	names []string // network namespaces; empty on loopback
	addrs []string
	tag   string
}

// newHosts makes n hosts: namespaces joined by a bridge for root, loopback
// addresses for others. What it makes is removed when the test ends.
func newHosts(t *testing.T, n int, seed uint64) *hosts {
	t.Helper()
	h := &hosts{tag: fmt.Sprintf("sh%d", os.Getpid()%10000)}
	if !canSeparate() {
		t.Log("no right to make network namespaces: links are not cut, the rest is as always")
		for i := range n {
			h.addrs = append(h.addrs, fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, seed%250, i+1))
		}
		return h
	}
	bridge := h.tag + "b"
	net := fmt.Sprintf("10.%d.%d", 100+os.Getpid()%100, seed%250)
	must(t, "ip", "link", "add", bridge, "type", "bridge")
	t.Cleanup(func() { quiet("ip", "link", "del", bridge) })
	must(t, "ip", "addr", "add", net+".254/24", "dev", bridge)
	must(t, "ip", "link", "set", bridge, "up")
	for i := range n {
		name, addr := fmt.Sprintf("%sn%d", h.tag, i+1), fmt.Sprintf("%s.%d", net, i+1)
		must(t, "ip", "netns", "add", name)
		t.Cleanup(func() { quiet("ip", "netns", "del", name) })
		outer, inner := name+"o", name+"i"
		must(t, "ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
		must(t, "ip", "link", "set", inner, "netns", name)
		must(t, "ip", "link", "set", outer, "master", bridge, "up")
		must(t, "ip", "-n", name, "addr", "add", addr+"/24", "dev", inner)
		must(t, "ip", "-n", name, "link", "set", inner, "up")
		must(t, "ip", "-n", name, "link", "set", "lo", "up")
		must(t, "ip", "netns", "exec", name, "nft", "add table inet chaos; add chain inet chaos in { type filter hook input priority 0; }")
		h.names, h.addrs = append(h.names, name), append(h.addrs, addr)
	}
	return h
}

// canSeparate reports whether namespaces and packet filters can be made here.
func canSeparate() bool {
	if os.Getuid() != 0 {
		return false
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	probe := fmt.Sprintf("shprobe%d", os.Getpid())
	if exec.Command("ip", "netns", "add", probe).Run() != nil {
		return false
	}
	defer quiet("ip", "netns", "del", probe)
	return exec.Command("ip", "netns", "exec", probe, "nft", "add table inet chaos").Run() == nil
}

// command runs a program on host i.
func (h *hosts) command(i int, name string, args ...string) *exec.Cmd {
	if len(h.names) == 0 {
		return exec.Command(name, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", h.names[i], name}, args...)...)
}

// cut drops what goes from one host to another, in that direction only.
func (h *hosts) cut(from, to int) error {
	if len(h.names) == 0 {
		return nil
	}
	out, err := exec.Command("ip", "netns", "exec", h.names[to], "nft", "add", "rule", "inet", "chaos", "in", "ip", "saddr", h.addrs[from], "drop").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cut %d to %d: %w: %s", from, to, err, out)
	}
	return nil
}

// heal mends every link.
func (h *hosts) heal() error {
	for _, name := range h.names {
		out, err := exec.Command("ip", "netns", "exec", name, "nft", "flush", "chain", "inet", "chaos", "in").CombinedOutput()
		if err != nil {
			return fmt.Errorf("heal %s: %w: %s", name, err, out)
		}
	}
	return nil
}

func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// quiet runs a command of the clean-up, whose failure changes no verdict.
func quiet(name string, args ...string) { _ = exec.Command(name, args...).Run() }
