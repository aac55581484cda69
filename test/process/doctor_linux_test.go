package process_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/test/interpose"
	"github.com/quorate/quorate/test/slowsync"
)

func init() { interpose.Main() }

// interposed starts a member by a function that may fail because the system allows no listener.
func (c *cluster) interposed(start func(cmd *exec.Cmd) error) func(cmd *exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		err := start(cmd)
		if errors.Is(err, interpose.ErrNoListener) {
			c.notInjected(err)
		}
		return err
	}
}

// ownDisk gives a member a disk whose syncs the test decides on.
func (c *cluster) ownDisk(n *node) *slowsync.Disk {
	disk := &slowsync.Disk{}
	n.begin = c.interposed(disk.Start)
	return disk
}

// afterStart is a delay of the disk of the last member that begins a moment after its start.
func (c *cluster) afterStart(each time.Duration) {
	disk := c.ownDisk(c.nodes[len(c.nodes)-1])
	timer := time.AfterFunc(6*time.Second, func() { disk.Delay(each) })
	c.t.Cleanup(func() {
		timer.Stop()
		disk.Delay(0)
	})
}

// writing loads the cluster for a while.
func writing(c *cluster) { c.fill(100, 400) }

// private makes a command run in a mount namespace of its own, after a script. That works for root, and where users may make
// namespaces.
func private(cmd *exec.Cmd, script string, env ...string) {
	cmd.Args = append([]string{"sh", "-c", script + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
}

// hosts are what a member's hosts file has: addresses by names of members. Whatever it does not have does not resolve.
type hosts map[string]string

// nameHosts lets members find each other by the names m1.members.test and so on, each in a hosts file of its own that no other program
// has. The function that it returns writes them.
func (c *cluster) nameHosts() (write func(of func(n *node) hosts)) {
	c.t.Helper()
	dir := c.t.TempDir()
	file := func(n *node) string { return filepath.Join(dir, "hosts-"+n.name) }
	write = func(of func(n *node) hosts) {
		for _, n := range c.nodes {
			text := ""
			for name, address := range of(n) {
				text += address + " " + name + ".members.test\n"
			}
			c.must(os.WriteFile(file(n), []byte(text), 0o600))
		}
	}
	write(func(*node) hosts { return allHosts() })
	resolv := filepath.Join(dir, "resolv.conf")
	c.must(os.WriteFile(resolv, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o600))
	var members, urls []string
	for _, n := range c.nodes {
		_, port, err := net.SplitHostPort(n.proxy.address())
		c.must(err)
		urls = append(urls, "http://"+n.name+".members.test:"+port)
		members = append(members, n.name+"="+urls[len(urls)-1])
	}
	const script = `mount --bind "$HOSTS" /etc/hosts && mount --bind "$RESOLV" /etc/resolv.conf`
	for i, n := range c.nodes {
		env := []string{"HOSTS=" + file(n), "RESOLV=" + resolv}
		probe := exec.Command("true")
		private(probe, script, env...)
		if out, err := probe.CombinedOutput(); err != nil {
			c.notInjected(fmt.Errorf("no mount namespace: %w: %s", err, out))
		}
		n.flags = []string{"--initial-advertise-peer-urls=" + urls[i], "--initial-cluster=" + strings.Join(members, ",")}
		n.prepare = func(cmd *exec.Cmd) { private(cmd, script, env...) }
	}
	return write
}

// elsewhere is an address of this machine at which no member listens.
const elsewhere = "127.0.0.9"

// allHosts are those of three members, but for some that are elsewhere, or nowhere if that is empty.
func allHosts(changed ...string) hosts {
	all := hosts{"m1": "127.0.0.1", "m2": "127.0.0.1", "m3": "127.0.0.1"}
	for i := 0; i+1 < len(changed); i += 2 {
		if all[changed[i]] = changed[i+1]; changed[i+1] == "" {
			delete(all, changed[i])
		}
	}
	return all
}

// renames is a fault of hosts files, which change once members run, of whom the one of a number leads; then they connect anew.
func renames(leader int, name string, code doctor.Code, status int, words string, of func(n *node) hosts) ailment {
	var write func(of func(n *node) hosts)
	return ailment{name: name, code: code, status: status, words: words,
		dress: func(c *cluster) { write = c.nameHosts() },
		inject: func(c *cluster) {
			c.lead(c.nodes[leader-1])
			last(6 * time.Second) // a resolver believes a file for so long
			write(of)
			last(6 * time.Second)
			for _, n := range c.nodes {
				n.proxy.cut()
				n.proxy.heal()
			}
		}}
}

// systemAilments are faults that need something of Linux.
var systemAilments = append(clockAilments, []ailment{
	renames(1, "a peer URL has a name that does not resolve", doctor.NameUnresolved, 5,
		"the name in the peer URL of m3, http://m3.members.test:", func(*node) hosts { return allHosts("m3", "") }),
	renames(3, "a peer URL has a name that one member does not resolve", doctor.NameUnresolved, 1, "does not resolve at m1: ",
		func(n *node) hosts {
			if n.name == "m1" {
				return allHosts("m2", "")
			}
			return allHosts()
		}),
	renames(1, "a peer URL has a name that resolves to a wrong address", doctor.PeerURLWrong, 5,
		"no member reaches m3 at its peer URL http://m3.members.test:", func(*node) hosts { return allHosts("m3", elsewhere) }),
	renames(3, "one member reaches another one, and not the other way round", doctor.LinkOneWay, 1, "m1 does not reach m2 (unreachable",
		func(n *node) hosts {
			if n.name == "m1" {
				return allHosts("m2", elsewhere)
			}
			return allHosts()
		}),
	renames(3, "two members do not reach each other", doctor.LinkDown, 1, "m1 and m2 have no connection (unreachable",
		func(n *node) hosts {
			switch n.name {
			case "m1":
				return allHosts("m2", elsewhere)
			case "m2":
				return allHosts("m1", elsewhere)
			}
			return allHosts()
		}),
	{name: "a slow disk of one member", dress: func(c *cluster) {
		c.ownDisk(c.nodes[2]).Delay(120 * time.Millisecond)
	}, inject: writing, code: doctor.DiskSlow, status: 1, words: "the disk of m3 is slow"},
	{name: "a disk that hangs", dress: func(c *cluster) { c.afterStart(40 * time.Second) }, inject: func(c *cluster) {
		last(7 * time.Second)
		go writing(c)
	}, code: doctor.DiskHangs, status: 5, words: "the disk of m3 hangs"},
	{name: "a disk that becomes read-only", dress: func(c *cluster) {
		disk := c.ownDisk(c.nodes[2])
		timer := time.AfterFunc(6*time.Second, func() { disk.Fail(unix.EROFS) })
		c.t.Cleanup(func() { timer.Stop() })
	}, inject: func(c *cluster) {
		last(7 * time.Second)
		writing(c)
	}, code: doctor.MemberDown, status: 5, words: "m3 is down"},
	{name: "few file descriptors", dress: func(c *cluster) { c.nodes[2].prepare = fewFiles(50) },
		inject: func(c *cluster) { c.hold(12) }, code: doctor.FilesNear, status: 5, words: "m3 has "},
}...)

// TestDoctor_offlineReadOnly wants a verdict on a directory of a disk that is mounted read-only, but none while a member runs there.
func TestDoctor_offlineReadOnly(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, calm...)
	n := c.nodes[0]
	c.put(n, "k", "1")
	judge := func() (string, error) {
		command := exec.Command(c.binary, "doctor", "--offline", n.dir)
		private(command, `mount --bind "$DISK" "$DISK" && mount -o remount,bind,ro "$DISK" && ! touch "$DISK/LOCK" 2>/dev/null`, "DISK="+n.dir)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := judge(); err == nil || !strings.Contains(out, "is in use by another process") {
		if strings.Contains(out, "mount: ") {
			t.Skipf("no disk can be mounted here: %s", out)
		}
		t.Errorf("of a running member: %v, %s", err, out)
	}
	n.kill()
	out, err := judge()
	if err != nil || !strings.Contains(out, "is on a disk that is mounted read-only") || !strings.Contains(out, "1 of 1 voter is here") {
		t.Errorf("%v, %s", err, out)
	}
}
