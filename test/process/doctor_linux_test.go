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

// nameHosts lets members find each other by the names m1.members.test and so on, in a hosts file that they share and no other program
// has. Whatever it does not have does not resolve.
func (c *cluster) nameHosts() (rename func(lines ...string)) {
	c.t.Helper()
	dir := c.t.TempDir()
	hosts, resolv := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	rename = func(lines ...string) {
		c.must(os.WriteFile(hosts, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	c.must(os.WriteFile(resolv, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o600))
	var lines, members, urls []string
	for _, n := range c.nodes {
		_, port, err := net.SplitHostPort(n.proxy.address())
		c.must(err)
		urls = append(urls, "http://"+n.name+".members.test:"+port)
		members = append(members, n.name+"="+urls[len(urls)-1])
		lines = append(lines, "127.0.0.1 "+n.name+".members.test")
	}
	rename(lines...)
	const script = `mount --bind "$HOSTS" /etc/hosts && mount --bind "$RESOLV" /etc/resolv.conf`
	env := []string{"HOSTS=" + hosts, "RESOLV=" + resolv}
	probe := exec.Command("true")
	private(probe, script, env...)
	if out, err := probe.CombinedOutput(); err != nil {
		c.notInjected(fmt.Errorf("no mount namespace: %w: %s", err, out))
	}
	for i, n := range c.nodes {
		n.flags = []string{"--initial-advertise-peer-urls=" + urls[i], "--initial-cluster=" + strings.Join(members, ",")}
		n.prepare = func(cmd *exec.Cmd) { private(cmd, script, env...) }
	}
	return rename
}

// renamed changes the hosts file once members run, and lets them connect anew.
func renamed(lines ...string) (dress, inject func(c *cluster)) {
	renames := map[*cluster]func(lines ...string){}
	return func(c *cluster) { renames[c] = c.nameHosts() }, func(c *cluster) {
		last(6 * time.Second) // a resolver believes a file for so long
		renames[c](lines...)
		last(6 * time.Second)
		c.nodes[2].proxy.cut()
		c.nodes[2].proxy.heal()
	}
}

// systemAilments are faults that need something of Linux.
var systemAilments = func() []ailment {
	forgets, forgotten := renamed("127.0.0.1 m1.members.test", "127.0.0.1 m2.members.test")
	misleads, misled := renamed("127.0.0.1 m1.members.test", "127.0.0.1 m2.members.test", "127.0.0.9 m3.members.test")
	return append(clockAilments, []ailment{
		{name: "a peer URL has a name that does not resolve", dress: forgets, inject: forgotten, code: doctor.NameUnresolved, status: 5,
			words: "the name in the peer URL of m3, http://m3.members.test:"},
		{name: "a peer URL has a name that resolves to a wrong address", dress: misleads, inject: misled, code: doctor.PeerURLWrong,
			status: 5, words: "no member reaches m3 at its peer URL http://m3.members.test:"},
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
}()

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
