package chaostest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// network is the hosts of a run and the links between them.
type network interface {
	// command runs a program on a host.
	command(host int, name string, args ...string) *exec.Cmd
	// listen is the address of a host, advertise the one that others use.
	listen(host int) string
	advertise(host int) string
	// hurt damages what goes from one host to another, in that direction only.
	hurt(from, to int, d damage) error
	// heal mends every link.
	heal() error
	// can reports whether a kind of damage can be done here.
	can(k damageKind) bool
}

// damage is what happens to a link.
type damage struct {
	kind    damageKind
	percent int           // of the packets, with lose
	delay   time.Duration // of each piece, with slow
}

type damageKind int

const (
	drop   damageKind = iota // nothing arrives and nobody says so
	reject                   // connections break at once
	lose                     // some packets do not arrive
	quiet                    // gossip does not arrive, all else does
	slow                     // everything arrives late
)

// The ports of every node.
const (
	portAPI    = "7700"
	portCalls  = "7701"
	portGossip = "7702"
)

// newNetwork makes hosts: namespaces joined by a bridge for root, loopback
// addresses with proxies between them for others. What it makes is removed
// when the test ends.
func newNetwork(t *testing.T, hosts int) network {
	t.Helper()
	if *rootless || !canSeparate() {
		return newProxies(t, hosts)
	}
	return newSpaces(t, hosts)
}

var networks atomic.Int64

// networkNumber is another one for every network of this machine that is in
// use.
func networkNumber() int { return os.Getpid()*64 + int(networks.Add(1))%64 }

// spaces are network namespaces joined by a bridge.
type spaces struct {
	names []string
	addrs []string
}

func newSpaces(t *testing.T, hosts int) *spaces {
	t.Helper()
	number := networkNumber()
	tag := fmt.Sprintf("sh%x", number)
	h := &spaces{}
	bridge := tag + "b"
	net := fmt.Sprintf("10.%d.%d", 64+number/250%128, number%250)
	must(t, "ip", "link", "add", bridge, "type", "bridge")
	t.Cleanup(func() { try("ip", "link", "del", bridge) })
	must(t, "ip", "addr", "add", net+".254/24", "dev", bridge)
	must(t, "ip", "link", "set", bridge, "up")
	for i := range hosts {
		name, addr := fmt.Sprintf("%sn%d", tag, i+1), fmt.Sprintf("%s.%d", net, i+1)
		must(t, "ip", "netns", "add", name)
		t.Cleanup(func() { try("ip", "netns", "del", name) })
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
	probe := fmt.Sprintf("shp%x", networkNumber())
	if exec.Command("ip", "netns", "add", probe).Run() != nil {
		return false
	}
	defer try("ip", "netns", "del", probe)
	return exec.Command("ip", "netns", "exec", probe, "nft", "add table inet chaos").Run() == nil
}

func (h *spaces) command(host int, name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", h.names[host], name}, args...)...)
}

func (h *spaces) listen(host int) string    { return h.addrs[host] }
func (h *spaces) advertise(host int) string { return h.addrs[host] }

func (h *spaces) can(k damageKind) bool { return k != slow }

func (h *spaces) hurt(from, to int, d damage) error {
	rules := map[damageKind][]string{
		drop:   {"drop"},
		reject: {"meta l4proto tcp reject with tcp reset", "drop"},
		lose:   {fmt.Sprintf("numgen random mod 100 < %d drop", d.percent)},
		quiet:  {"udp dport " + portGossip + " drop", "tcp dport " + portGossip + " drop"},
	}[d.kind]
	for _, rule := range rules {
		args := append([]string{"netns", "exec", h.names[to], "nft", "add", "rule", "inet", "chaos", "in", "ip", "saddr", h.addrs[from]}, strings.Fields(rule)...)
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s from %d to %d: %w: %s", rule, from, to, err, out)
		}
	}
	return nil
}

func (h *spaces) heal() error {
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

// try runs a command of the clean-up, whose failure changes no verdict.
func try(name string, args ...string) { _ = exec.Command(name, args...).Run() }
