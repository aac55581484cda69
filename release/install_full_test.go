//go:build full && linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pack is a package of two versions, and the tool that installs it.
type pack interface {
	install(in *inside, version int)
	remove(in *inside)
	purge(in *inside) // with its configuration, if the tool can
}

type deb [2]string

func (d deb) install(in *inside, version int) { in.run("dpkg", "-i", in.bring(d[version])) }
func (deb) remove(in *inside)                 { in.run("dpkg", "-r", "quorate") }
func (deb) purge(in *inside)                  { in.run("dpkg", "-P", "quorate") }

type rpm [2]string

func (r rpm) install(in *inside, version int) {
	// Of Debian's packages rpm knows none.
	in.run("rpm", "-U", "--nodeps", in.bring(r[version]))
}
func (rpm) remove(in *inside) { in.run("rpm", "-e", "quorate") }
func (rpm) purge(*inside)     {}

// bring copies a file into the root.
func (in *inside) bring(file string) string {
	in.t.Helper()
	to := "/tmp/" + filepath.Base(file)
	_ = os.Remove(filepath.Join(in.root, to))
	if err := copyFile(filepath.Join(in.root, to), file, 0o644); err != nil {
		in.t.Fatal(err)
	}
	return to
}

func (in *inside) read(path string) string {
	content, _ := os.ReadFile(filepath.Join(in.root, path))
	return string(content)
}

func (in *inside) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(in.root, path))
	return err == nil
}

const fakeSystemctl = "#!/bin/sh\necho \"$@\" >>/systemctl.log\n"

// installed takes a package through its life, on a copy of this machine's files in which systemd seems to run: systemctl writes
// down what it is asked for.
func installed(t *testing.T, p pack) {
	in := machine(t)
	p.install(in, 0)
	uid, gid := in.owner()
	if got := in.read("/systemctl.log"); got != "daemon-reload\n" {
		t.Errorf("a first installation asked systemd for %q: it must start nothing", got)
	}
	clients, peers := freeAddress(t), freeAddress(t)
	configured := strings.NewReplacer("127.0.0.1:2379", clients, "127.0.0.1:2380", peers).Replace(in.read("/etc/quorate/quorate.yaml"))
	write(t, filepath.Join(in.root, "/etc/quorate/quorate.yaml"), configured)

	as := *in
	as.uid, as.gid = uid, gid
	state := filepath.Join(in.root, "/var/lib/quorate") // what StateDirectory does
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, int(as.uid), int(as.gid)); err != nil {
		t.Fatal(err)
	}
	start := func() *unit {
		u := as.start("/run/notify", "/usr/bin/quorate", "--config-file", "/etc/quorate/quorate.yaml")
		for _, word := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
			u.waitFor(word)
		}
		return u
	}
	u := start()
	in.run("/usr/bin/quorate", "--endpoints", clients, "put", "a", "kept")

	_ = os.Remove(filepath.Join(in.root, "/systemctl.log"))
	p.install(in, 1)
	if got := in.read("/systemctl.log"); got != "daemon-reload\n" || !u.alive() {
		t.Errorf("an upgrade asked systemd for %q; the member is alive: %v", got, u.alive())
	}
	if in.read("/etc/quorate/quorate.yaml") != configured {
		t.Error("an upgrade changed the configuration")
	}
	u.stop()
	u = start()
	if got := in.run("/usr/bin/quorate", "--endpoints", clients, "get", "a"); !strings.Contains(got, "kept") {
		t.Errorf("after the upgrade: %q", got)
	}
	if got := in.run("/usr/bin/quorate", "version"); !strings.HasPrefix(got, "quorate Version: 1.0.1\n") {
		t.Errorf("after the upgrade: %q", got)
	}
	u.stop()
	gone(t, in, p)
}

// gone upgrades with the wish for a restart, and takes the package away.
func gone(t *testing.T, in *inside, p pack) {
	write(t, filepath.Join(in.root, "/etc/quorate/restart-on-upgrade"), "")
	_ = os.Remove(filepath.Join(in.root, "/systemctl.log"))
	if d, ok := p.(deb); ok { // rpm installs no version twice
		d.install(in, 1)
		if got := in.read("/systemctl.log"); !strings.Contains(got, "try-restart quorate.service quorate@*.service\n") {
			t.Errorf("an upgrade that shall restart asked systemd for %q", got)
		}
	}
	_ = os.Remove(filepath.Join(in.root, "/systemctl.log"))
	p.remove(in)
	if got := in.read("/systemctl.log"); !strings.Contains(got, "disable --now quorate.service\n") {
		t.Errorf("a removal asked systemd for %q", got)
	}
	p.purge(in)
	for path, want := range map[string]bool{"/usr/bin/quorate": false, "/usr/lib/systemd/system/quorate.service": false,
		"/var/lib/quorate/default": true} {
		if in.exists(path) != want {
			t.Errorf("after the removal %s is there: %v, want %v", path, !want, want)
		}
	}
	if _, isDeb := p.(deb); isDeb && in.exists("/etc/quorate/quorate.yaml") {
		t.Error("a purge left the configuration")
	}
	if !strings.Contains(in.read("/etc/passwd"), "\nquorate:") {
		t.Error("the user to whom the data belong is gone")
	}
}

// machine is a root with the files of this machine, whose changes are gone when the test ends.
func machine(t *testing.T) *inside {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, part), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "root")
	mount(t, "overlay", root, "overlay", 0, "lowerdir=/,upperdir="+filepath.Join(dir, "upper")+",workdir="+filepath.Join(dir, "work"))
	mount(t, "proc", filepath.Join(root, "proc"), "proc", 0, "")
	mount(t, "/dev", filepath.Join(root, "dev"), "", syscall.MS_BIND, "")
	mount(t, "tmpfs", filepath.Join(root, "run"), "tmpfs", 0, "mode=0755")
	mount(t, "tmpfs", filepath.Join(root, "tmp"), "tmpfs", 0, "mode=1777")
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "run"), 0o777); err != nil { // for the socket, which a user of the member writes to
		t.Fatal(err)
	}
	fake := filepath.Join(root, "usr/bin/systemctl")
	_ = os.Remove(fake) // of the copy
	write(t, fake, fakeSystemctl)
	if err := os.Chmod(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	return &inside{t: t, root: root}
}

// owner is the user of the package.
func (in *inside) owner() (uid, gid uint32) {
	in.t.Helper()
	passwd := regexp.MustCompile(`(?m)^quorate:[^:]*:(\d+):(\d+):.*nologin$`).FindStringSubmatch(in.read("/etc/passwd"))
	if passwd == nil {
		in.t.Fatalf("no user was made:\n%s", in.read("/etc/passwd"))
	}
	return number(in.t, passwd[1]), number(in.t, passwd[2])
}

func number(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
