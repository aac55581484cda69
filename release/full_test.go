//go:build full && linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// patience bounds what should take seconds, on a machine that has other work.
const patience = 2 * time.Minute

// command runs a program and fails the test if it fails.
func command(t *testing.T, environ []string, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), environ...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// TestFull makes the real release twice, in places that differ in all that may differ, and tries everything that is in it.
// It wants root, lintian, rpm, minisign and systemd-analyze.
func TestFull(t *testing.T) {
	for _, tool := range []string{"lintian", "rpm", "minisign", "systemd-analyze", "dpkg-deb", "man"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: install it", err)
		}
	}
	if os.Getuid() != 0 {
		t.Fatal("chroots and mounts want root")
	}
	repo := gitIn(t, ".", "rev-parse", "--show-toplevel")
	// Where the files of a commit may stay, so that a second run does not wait for them.
	commit := gitIn(t, repo, "rev-parse", "HEAD")
	dir := filepath.Join(cmp.Or(os.Getenv("RELEASE_CHECK_DIR"), t.TempDir()), commit)
	program := filepath.Join(t.TempDir(), "release")
	command(t, []string{"GOFLAGS=-trimpath"}, "go", "build", "-o", program, ".")
	key := filepath.Join(t.TempDir(), "key")
	public := strings.Fields(command(t, []string{passwordVariable + "=secret"}, program, "key", key))
	out := filepath.Join(dir, "v1.0.0")
	makeIn := func(environ []string, repo, out, version string, more ...string) {
		t.Helper()
		if _, err := os.Stat(out); err == nil {
			return
		}
		args := append([]string{"make", "--repo", repo, "--commit", commit, "--version", version, "--out", out}, more...)
		command(t, append(environ, passwordVariable+"=secret"), program, args...)
	}
	makeIn(nil, repo, out, "v1.0.0", "--key", key)
	next := filepath.Join(dir, "v1.0.1")
	makeIn(nil, repo, next, "v1.0.1", "--only", "quorate_1.0.1_linux_amd64.deb", "--only", "quorate_1.0.1_linux_amd64.rpm")
	t.Run("elsewhere", func(t *testing.T) {
		home := t.TempDir()
		clone := filepath.Join(home, "c d")
		gitIn(t, home, "clone", "-q", repo, clone)
		again := filepath.Join(dir, "again")
		makeIn([]string{"HOME=" + home, "GOCACHE=" + filepath.Join(home, "cache"), "GOMODCACHE=" + goSettings(t)["GOMODCACHE"],
			"TZ=Asia/Kathmandu", "GOMAXPROCS=1", "USER=other"}, clone, again, "v1.0.0", "--key", key)
		all := (&Release{Product: quorate, Version: "v1.0.0"}).artifacts()
		if names := sameFiles(t, out, again); len(names) != len(all)+1 { // and the signature
			t.Errorf("%d files are wanted, got %q", len(all)+1, names)
		}
	})
	t.Run("verify", func(t *testing.T) { checkVerify(t, program, repo, commit, out, public[len(public)-1]) })
	t.Run("packages", func(t *testing.T) { checkPackages(t, out) })
	t.Run("deb", func(t *testing.T) {
		installed(t, deb{filepath.Join(out, "quorate_1.0.0_linux_amd64.deb"), filepath.Join(next,
			"quorate_1.0.1_linux_amd64.deb")})
	})
	t.Run("cluster", func(t *testing.T) {
		checkCluster(t, deb{filepath.Join(out, "quorate_1.0.0_linux_amd64.deb"), filepath.Join(next,
			"quorate_1.0.1_linux_amd64.deb")})
	})
	t.Run("rpm", func(t *testing.T) {
		installed(t, rpm{filepath.Join(out, "quorate_1.0.0_linux_amd64.rpm"), filepath.Join(next,
			"quorate_1.0.1_linux_amd64.rpm")})
	})
	t.Run("image", func(t *testing.T) { checkImage(t, filepath.Join(out, "quorate_1.0.0_image.tar")) })
}

// checkVerify verifies files by the program of the commit, and lets other tools check sums and signature.
func checkVerify(t *testing.T, program, repo, commit, out, public string) {
	clone := filepath.Join(t.TempDir(), "clone") // the tag of the version is in no other
	gitIn(t, repo, "clone", "-q", "--no-tags", "--shared", repo, clone)
	gitIn(t, clone, "tag", "v1.0.0", commit)
	for _, file := range []string{"quorate_1.0.0_linux_arm64.deb", "quorate_1.0.0_image.tar"} {
		said := command(t, nil, program, "verify", "--repo", clone, filepath.Join(out, file))
		if !strings.Contains(said, "\nsame         "+file+": v1.0.0, commit "+commit+"\n") {
			t.Error(said)
		}
	}
	command(t, nil, "minisign", "-V", "-P", public, "-m", filepath.Join(out, sumsName))
	command(t, nil, "sh", "-c", "cd '"+out+"' && sha256sum --strict -c "+sumsName)
	var bom struct {
		Components []struct{ Name, Version string }
	}
	readJSON(t, filepath.Join(out, "quorate_1.0.0_linux_amd64.cdx.json"), &bom)
	recorded := command(t, nil, "go", "version", "-m", filepath.Join(out, "quorate_1.0.0_linux_amd64"))
	if n := strings.Count(recorded, "\n\tdep\t"); n != len(bom.Components)-1 || n < 30 {
		t.Errorf("%d modules in the program, %d in its bill of materials", n, len(bom.Components)-1)
	}
	for _, c := range bom.Components[1:] {
		if !strings.Contains(recorded, "\t"+c.Name+"\t"+c.Version+"\t") {
			t.Errorf("%s %s is not in the program", c.Name, c.Version)
		}
	}
}

// checkPackages lets the tools of the distributions judge.
func checkPackages(t *testing.T, out string) {
	for _, arch := range []string{"amd64", "arm64"} {
		stem := filepath.Join(out, "quorate_1.0.0_linux_"+arch)
		command(t, nil, "lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", stem+".deb")
		command(t, nil, "rpm", "-K", "--nosignature", stem+".rpm")
		if got := command(t, nil, "rpm", "-qp", "--scripts", stem+".rpm"); strings.Count(got, "scriptlet") != 3 {
			t.Errorf("scripts of the rpm:\n%s", got)
		}
		if got := command(t, nil, "rpm", "-qpc", stem+".rpm"); got != "/etc/quorate/quorate.yaml\n" {
			t.Errorf("configuration of the rpm: %s", got)
		}
	}
	root := t.TempDir()
	command(t, nil, "dpkg-deb", "-x", filepath.Join(out, "quorate_1.0.0_linux_amd64.deb"), root)
	for _, unit := range []string{"quorate.service", "quorate@.service"} {
		file := "/usr/lib/systemd/system/" + unit
		said := command(t, nil, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "--root="+root,
			strings.Replace(file, "@.", "@blue.", 1))
		if said != "" {
			t.Errorf("%s: %s", unit, said)
		}
	}
	command(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=15", "--root="+root, "--no-pager",
		"/usr/lib/systemd/system/quorate.service")
	pages, _ := filepath.Glob(filepath.Join(root, "usr/share/man/man1/*.gz"))
	if len(pages) < 15 {
		t.Errorf("only %q", pages)
	}
	for _, page := range pages {
		said := command(t, []string{"MANWIDTH=100", "LC_ALL=C.UTF-8"}, "sh", "-c",
			"man --warnings -E UTF-8 -l -Tutf8 '"+page+"' 2>&1 >/dev/null")
		if said != "" {
			t.Errorf("%s: %s", filepath.Base(page), said)
		}
	}
	program := filepath.Join(root, "usr/bin/quorate")
	command(t, nil, program, "config", "print", "--config-file", filepath.Join(root, "etc/quorate/quorate.yaml"))
}

// checkImage pushes the image, pulls it, and runs it as a user without rights whose root cannot be written.
func checkImage(t *testing.T, file string) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/quorate:v1.0.0"
	var errs strings.Builder
	if status := run(t.Context(), quorate, []string{"push", file, to}, io.Discard, &errs); status != 0 {
		t.Fatal(errs.String())
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: host().Arch}))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-p", "-C", root)
	unpack.Stdin = mutate.Extract(image)
	if said, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	mount(t, root, root, "", syscall.MS_BIND, "")
	mount(t, "", root, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	mount(t, "tmpfs", filepath.Join(root, "var/lib/quorate"), "tmpfs", 0, "mode=0700,uid=65532,gid=65532")
	in := &inside{t: t, root: root, uid: 65532, gid: 65532}
	if got := in.run("/usr/local/bin/etcd", "--version"); !strings.HasPrefix(got, "quorate Version: 1.0.0\netcd Version: ") {
		t.Errorf("etcd --version: %s", got)
	}
	if got := in.run("/usr/local/bin/etcdctl", "version"); !strings.HasPrefix(got, "etcdctl version: ") {
		t.Errorf("etcdctl version: %s", got)
	}
	clients, peers := "http://"+freeAddress(t), "http://"+freeAddress(t)
	m := in.start("/var/lib/quorate/notify", "/usr/local/bin/etcd", "--data-dir", "/var/lib/quorate/d", "--listen-client-urls",
		clients,
		"--advertise-client-urls", clients, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers)
	m.waitFor("READY=1")
	in.run("/usr/local/bin/etcdctl", "--endpoints", clients, "put", "a", "1")
	if got := in.run("/usr/local/bin/etcdctl", "--endpoints", clients, "get", "a"); got != "a\n1\n" {
		t.Errorf("got %q", got)
	}
	m.stop()
}

// mount mounts something until the test ends.
func mount(t *testing.T, source, at, kind string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount(source, at, kind, flags, options); err != nil {
		t.Fatalf("mount %s: %v", at, err)
	}
	if flags&syscall.MS_REMOUNT == 0 {
		t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// inside runs programs in another root, as another user.
type inside struct {
	t        *testing.T
	root     string
	uid, gid uint32
}

func (in *inside) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LC_ALL=C",
		"DEBIAN_FRONTEND=noninteractive"}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: in.root, Credential: &syscall.Credential{Uid: in.uid, Gid: in.gid}}
	return c
}

func (in *inside) run(program string, args ...string) string {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(in.t.Context(), patience)
	defer cancel()
	out, err := in.command(ctx, program, args...).CombinedOutput()
	if err != nil {
		in.t.Errorf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// unit is a process that was started as systemd starts one of Type=notify with a watchdog.
type unit struct {
	t      *testing.T
	c      *exec.Cmd
	socket *net.UnixConn
	said   bytes.Buffer
	words  chan string
	ended  chan error
}

func (in *inside) start(socket, program string, args ...string) *unit {
	in.t.Helper()
	path := filepath.Join(in.root, socket)
	_ = os.Remove(path)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		in.t.Fatal(err)
	}
	if err := os.Chown(path, int(in.uid), int(in.gid)); err != nil {
		in.t.Fatal(err)
	}
	u := &unit{t: in.t, socket: conn, words: make(chan string, 8), ended: make(chan error, 1)}
	go u.listen()
	u.c = in.command(in.t.Context(), program, args...)
	u.c.Env = append(u.c.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=2000000")
	u.c.Stdout, u.c.Stderr = &u.said, &u.said
	if err := u.c.Start(); err != nil {
		in.t.Fatal(err)
	}
	go func() { u.ended <- u.c.Wait() }()
	in.t.Cleanup(func() { _ = u.c.Process.Kill(); _ = conn.Close() })
	return u
}

// listen reads as systemd does, all the time: a socket that is full would hold up the process.
func (u *unit) listen() {
	defer close(u.words)
	for {
		text := make([]byte, 256)
		n, err := u.socket.Read(text)
		if err != nil {
			return
		}
		select {
		case u.words <- string(text[:n]):
		default: // the test waits for none now
		}
	}
}

// waitFor waits until the process tells systemd a word.
func (u *unit) waitFor(word string) {
	u.t.Helper()
	late := time.After(patience)
	for {
		select {
		case said := <-u.words:
			if said == word {
				return
			}
		case err := <-u.ended:
			u.t.Fatalf("it ended before %s: %v\n%s", word, err, &u.said)
		case <-late:
			_ = u.c.Process.Kill()
			<-u.ended
			u.t.Fatalf("no %s\n%s", word, &u.said)
		}
	}
}

// alive tells whether the process runs.
func (u *unit) alive() bool { return u.c.Process.Signal(syscall.Signal(0)) == nil && len(u.ended) == 0 }

// stop stops it as systemd does.
func (u *unit) stop() {
	u.t.Helper()
	_ = u.c.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-u.ended:
		if err != nil {
			u.t.Errorf("%v\n%s", err, &u.said)
		}
	case <-time.After(patience):
		u.t.Error("it does not stop")
		_ = u.c.Process.Kill()
	}
}
