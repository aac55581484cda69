//go:build full && linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fleet is a cluster of three members, each on a machine of its own with the package installed.
type fleet struct {
	t        *testing.T
	builds   deb
	machines []*fleetMember
	clients  string // all client addresses
}

type fleetMember struct {
	*inside
	name, client, peer string
	unit               *unit
}

// checkCluster takes a cluster of packages through what docs/operate.md and docs/upgrade.md describe: three machines, a second
// build under load, the way back, and five faults that the doctor must name.
func checkCluster(t *testing.T, builds deb) {
	c := newFleet(t, builds)
	for _, m := range c.machines {
		m.unit = m.begin()
	}
	for _, m := range c.machines {
		m.unit.waitFor("READY=1")
	}
	loadEnds := c.load()
	c.upgradeTo(1, "1.0.1")
	c.upgradeTo(0, "1.0.0")
	loadEnds()
	c.faults()
}

func newFleet(t *testing.T, builds deb) *fleet {
	c := &fleet{t: t, builds: builds}
	var initial, clients []string
	for i := range 3 {
		m := &fleetMember{inside: machine(t), name: fmt.Sprint("m", i+1), client: freeAddress(t), peer: freeAddress(t)}
		initial, clients = append(initial, m.name+"=http://"+m.peer), append(clients, m.client)
		c.machines = append(c.machines, m)
	}
	c.clients = strings.Join(clients, ",")
	for _, m := range c.machines {
		builds.install(m.inside, 0)
		file := filepath.Join(m.root, "/etc/quorate/quorate.yaml")
		write(t, file, strings.NewReplacer("name: default", "name: "+m.name, "/quorate/default", "/quorate/"+m.name,
			"127.0.0.1:2379", m.client, "default=http://127.0.0.1:2380", strings.Join(initial, ","), "127.0.0.1:2380",
			m.peer).Replace(m.read("/etc/quorate/quorate.yaml"))+"memory: 512MiB\n")
		m.prepare()
	}
	return c
}

// prepare does what systemd does before it starts the unit.
func (m *fleetMember) prepare() {
	m.t.Helper()
	uid, gid := m.owner()
	state := filepath.Join(m.root, "/var/lib/quorate")
	if err := os.MkdirAll(state, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chown(state, int(uid), int(gid)); err != nil {
		m.t.Fatal(err)
	}
}

// begin starts the line of the unit as the user of the package.
func (m *fleetMember) begin() *unit {
	as := *m.inside
	as.uid, as.gid = m.owner()
	return as.start("/run/notify", "/usr/bin/quorate", "--config-file", "/etc/quorate/quorate.yaml")
}

// quorate gives a command to the cluster, as an operator on the first machine. The error is that of its exit status.
func (c *fleet) quorate(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	args = append([]string{"--endpoints", c.clients}, args...)
	out, err := c.machines[0].command(ctx, "/usr/bin/quorate", args...).CombinedOutput()
	return string(out), err
}

// must is quorate for commands that must succeed.
func (c *fleet) must(args ...string) string {
	c.t.Helper()
	said, err := c.quorate(args...)
	if err != nil {
		c.t.Fatalf("quorate %q: %v\n%s", args, err, said)
	}
	return said
}

// eventually gives a command until what it says pleases.
func (c *fleet) eventually(args []string, pleases func(said string, err error) bool) string {
	c.t.Helper()
	for end := time.Now().Add(patience); ; {
		said, err := c.quorate(args...)
		if pleases(said, err) {
			return said
		}
		if time.Now().After(end) {
			c.t.Fatalf("quorate %q, for %v: %v\n%s", args, patience, err, said)
		}
		select {
		case <-c.t.Context().Done():
			c.t.Fatal("the test ended")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// load writes until the function that it returns is called, which compares what was acknowledged with what is there, or until
// the test ends.
func (c *fleet) load() (end func()) {
	stop, done, n := make(chan struct{}), make(chan struct{}), 0
	halt := sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	c.t.Cleanup(halt) // after Fatal, too: nothing is reported of a test that has ended
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			said, err := c.quorate("put", fmt.Sprintf("load/%06d", n), fmt.Sprint(n))
			if c.t.Context().Err() != nil { // it ends before the cleanup, and the command with it
				return
			}
			if err != nil {
				c.t.Errorf("put %d: %v: %s", n, err, said)
			}
			n++
		}
	}()
	return func() {
		c.t.Helper()
		halt()
		lines := strings.Split(strings.TrimSpace(c.must("get", "--prefix", "load/")), "\n")
		if n < 20 || len(lines) != 2*n {
			c.t.Errorf("%d puts were acknowledged, and %d lines of keys and values are there", n, len(lines))
		}
	}
}

// upgradeTo restarts all members with a build, in the order of the plan.
func (c *fleet) upgradeTo(version int, number string) {
	c.t.Helper()
	for range c.machines {
		// A member that has just come back may have to catch up.
		said := c.eventually([]string{"upgrade", "plan", "--to", number, "-o", "json"},
			func(_ string, err error) bool { return err == nil })
		var plan struct{ Steps []struct{ Member string } }
		if err := json.Unmarshal([]byte(said), &plan); err != nil || len(plan.Steps) == 0 {
			c.t.Fatalf("%v: %s", err, said)
		}
		m := c.machines[slices.IndexFunc(c.machines, func(m *fleetMember) bool { return m.name == plan.Steps[0].Member })]
		c.builds.install(m.inside, version)
		m.unit.stop()
		m.unit = m.begin()
		m.unit.waitFor("READY=1")
	}
	if said := c.must("upgrade", "plan", "--to", number); !strings.Contains(said, "nothing is left to restart") {
		c.t.Errorf("after the last restart the plan says: %s", said)
	}
}

// faults breaks five things, one after the other, and reads what the doctor says first.
func (c *fleet) faults() {
	m := c.machines[2]
	doctor := func(fault, code string) {
		c.t.Helper()
		said := c.eventually([]string{"doctor", "-o", "json", "--timeout", "3s"}, func(said string, _ error) bool {
			return firstCode(said) == code
		})
		c.t.Logf("%s: %s", fault, firstSentence(said))
	}
	healthy := func() {
		c.t.Helper()
		c.eventually([]string{"doctor", "-o", "json"}, func(said string, err error) bool { return err == nil })
	}
	healthy()
	_ = m.unit.c.Process.Kill()
	<-m.unit.ended
	doctor("a member is killed", "MEMBER_DOWN")
	m.unit = m.begin()
	m.unit.waitFor("READY=1")
	healthy()
	_ = m.unit.c.Process.Signal(syscall.SIGSTOP)
	doctor("a process stands still", "MEMBER_HANGS")
	_ = m.unit.c.Process.Signal(syscall.SIGCONT)
	healthy()
	file := filepath.Join(m.root, "/etc/quorate/quorate.yaml")
	right := m.read("/etc/quorate/quorate.yaml")
	write(c.t, file, strings.Replace(right, "advertise-client-urls: http://"+m.client,
		"advertise-client-urls: http://127.0.0.1:1", 1))
	m.unit.stop()
	m.unit = m.begin()
	doctor("a client URL is mistyped", "CLIENT_URL_WRONG")
	write(c.t, file, right)
	m.unit.stop()
	m.unit = m.begin()
	healthy()
	m.unit.stop()
	if err := os.RemoveAll(filepath.Join(m.root, "/var/lib/quorate", m.name)); err != nil {
		c.t.Fatal(err)
	}
	m.unit = m.begin()
	doctor("a disk is lost", "DISK_LOST")
	for _, other := range c.machines[1:] {
		_ = other.unit.c.Process.Kill()
	}
	doctor("two of three are killed", "NO_QUORUM")
}

// firstCode is the code of the first finding.
func firstCode(said string) string { return firstFinding(said).Code }

func firstSentence(said string) string { return firstFinding(said).Sentence }

type finding struct{ Code, Sentence string }

func firstFinding(said string) finding {
	var verdict struct{ Findings []finding }
	if err := json.Unmarshal([]byte(said), &verdict); err != nil || len(verdict.Findings) == 0 {
		return finding{}
	}
	return verdict.Findings[0]
}
