package chaostest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxies are hosts on addresses of the loopback, for those who may not make
// namespaces. Each node listens on an address of its own and tells the others
// another one, behind which a proxy passes on what the links let through. Who
// opens a connection is found by the process that has the other end of it.
type proxies struct {
	base string // the first three numbers of all addresses

	mu    sync.Mutex // guards the fields below
	links map[[2]int]damage
	mend  chan struct{} // closed by heal
	conns map[net.Conn][2]int
	pids  map[int]func() int // the process of a host
	udp   []*net.UDPConn
}

// The last numbers of the addresses of a host.
const (
	ownAddress = 10
	toldFrom   = 100
)

func newProxies(t *testing.T, hosts int) *proxies {
	t.Helper()
	number := networkNumber()
	p := &proxies{
		base: fmt.Sprintf("127.%d.%d", 1+number/250%250, number%250), links: map[[2]int]damage{}, mend: make(chan struct{}),
		conns: map[net.Conn][2]int{}, pids: map[int]func() int{},
	}
	for i := range hosts {
		for _, port := range []string{portCalls, portGossip} {
			l, err := net.Listen("tcp", p.advertise(i)+":"+port)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go p.serve(l, i, port)
		}
		u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(p.advertise(i)+":"+portGossip)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { u.Close() })
		p.udp = append(p.udp, u)
	}
	for i := range hosts {
		go p.packets(i)
	}
	return p
}

func (p *proxies) listen(host int) string    { return fmt.Sprintf("%s.%d", p.base, ownAddress+host) }
func (p *proxies) advertise(host int) string { return fmt.Sprintf("%s.%d", p.base, toldFrom+host) }

func (p *proxies) can(damageKind) bool { return true }

func (p *proxies) command(host int, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids[host] = func() int {
		if cmd.Process == nil {
			return 0
		}
		return cmd.Process.Pid
	}
	return cmd
}

func (p *proxies) hurt(from, to int, d damage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[[2]int{from, to}] = d
	if d.kind == reject {
		for c, link := range p.conns {
			if link == [2]int{from, to} || link == [2]int{to, from} {
				c.Close()
			}
		}
	}
	return nil
}

func (p *proxies) heal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.links)
	close(p.mend)
	p.mend = make(chan struct{})
	return nil
}

func (p *proxies) link(from, to int) (d damage, hurt bool, mend <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, hurt = p.links[[2]int{from, to}]
	return d, hurt, p.mend
}

// serve passes on the connections to one port of a host.
func (p *proxies) serve(l net.Listener, to int, port string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			from := p.opener(in)
			if from < 0 {
				return
			}
			out, err := net.Dial("tcp", p.listen(to)+":"+port)
			if err != nil {
				return
			}
			defer out.Close()
			p.mu.Lock()
			p.conns[in] = [2]int{from, to}
			p.mu.Unlock()
			defer func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.conns, in)
			}()
			go p.pass(out, in, to, from, port)
			p.pass(in, out, from, to, port)
		}()
	}
}

var errRejected = errors.New("the link refuses connections")

// gate waits for as long as a link holds back what goes over it.
func (p *proxies) gate(from, to int, port string) error {
	for {
		d, hurt, mend := p.link(from, to)
		switch {
		case !hurt, d.kind == lose && rand.IntN(100) >= d.percent, d.kind == quiet && port != portGossip:
			return nil
		case d.kind == reject:
			return errRejected
		case d.kind == lose: // sent again by the system
			d.delay = 200 * time.Millisecond
		case d.kind == drop, d.kind == quiet:
			d.delay = time.Hour
		}
		select {
		case <-mend:
		case <-time.After(d.delay):
			return nil
		}
	}
}

// pass copies one direction of a connection.
func (p *proxies) pass(in, out net.Conn, from, to int, port string) {
	defer in.Close()
	defer out.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if p.gate(from, to, port) != nil {
				return
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// packets passes on the packets to a host. They come from the address that
// the sender has told.
func (p *proxies) packets(to int) {
	buf := make([]byte, 64<<10)
	target := netip.MustParseAddrPort(p.listen(to) + ":" + portGossip)
	for {
		n, addr, err := p.udp[to].ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		from := int(addr.Addr().Unmap().As4()[3]) - ownAddress
		if from < 0 || from >= len(p.udp) {
			continue
		}
		d, hurt, _ := p.link(from, to)
		send := func(b []byte) { _, _ = p.udp[from].WriteToUDPAddrPort(b, target) } // a packet may be lost
		switch {
		case !hurt, d.kind == lose && rand.IntN(100) >= d.percent:
			send(buf[:n])
		case d.kind == slow:
			late := append([]byte(nil), buf[:n]...)
			time.AfterFunc(d.delay, func() { send(late) })
		}
	}
}

// opener is the host whose process has the other end of a connection, -1 when
// there is none.
func (p *proxies) opener(c net.Conn) int {
	inode := socketInode(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	if inode == "" {
		return -1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, pid := range p.pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid()))
		if err != nil {
			continue
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && to == "socket:["+inode+"]" {
				return host
			}
		}
	}
	return -1
}

// socketInode finds the socket that has a local address.
func socketInode(local netip.AddrPort) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	ip := local.Addr().Unmap().As4()
	want := fmt.Sprintf("%08X:%04X", binary.LittleEndian.Uint32(ip[:]), local.Port())
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == want && fields[9] != "0" {
			return fields[9]
		}
	}
	return ""
}
