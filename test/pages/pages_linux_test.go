package pages_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// insideVar is set in the process that runs in namespaces of its own. Its value is the directory of the programs.
	insideVar = "QUORATE_PAGES_PROGRAMS"
	// stateVar names the directory of a machine in which the stand-ins for systemctl and scp keep what they know.
	stateVar = "QUORATE_PAGES_STATE"
	// unitVar names the file of the unit that the packages bring.
	unitVar = "QUORATE_PAGES_UNIT"
)

// patience is how long a block of a page may take.
var patience = 2 * time.Minute

// TestMain lets the programs systemctl, scp and chown of the machines be this one.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "systemctl":
		os.Exit(exit(systemctl(os.Args[1:])))
	case "scp":
		os.Exit(exit(scp(os.Args[1:])))
	case "chown":
		os.Exit(exit(chown(os.Args[1:])))
	case "kubeadm":
		os.Exit(exit(kubeadm(os.Args[1:])))
	case "kubelet":
		os.Exit(exit(kubelet(os.Args[1:])))
	case "kms-plugin":
		os.Exit(exit(kmsPlugin(os.Args[1:])))
	}
	os.Exit(m.Run())
}

func exit(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestPages runs each block of the pages in its order.
func TestPages(t *testing.T) {
	if os.Getenv(insideVar) != "" {
		runBlocks(t, blocks(t, page(t, "../../docs/tuning.md")))
		runBlocks(t, blocks(t, page(t, "../../docs/operate.md")), "m1", "m2", "m3", "m4")
		return
	}
	runInside(t, programs(t), "-test.run", "^TestPages$", "-test.v", "-test.timeout", "9m")
}

// runInside runs a test of this binary again, in namespaces of its own and with a directory of programs.
func runInside(t *testing.T, dir string, args ...string) {
	t.Helper()
	for _, program := range []string{"bash", "curl", "openssl", "mount", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the page uses %s, which is not here", program)
		}
	}
	if err := inNamespaces(exec.Command("sh", "-c",
		"mount -t proc none /proc && ip link add sites type bridge && ip link add to1 type veth peer name eth0")).Run(); err != nil {
		t.Skipf("this process may not have mounts and networks of its own: %v", err)
	}
	inside := inNamespaces(exec.Command(ownPath(t), args...))
	inside.Env = append(os.Environ(), insideVar+"="+dir)
	out, err := inside.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// ownPath is the file of this process.
func ownPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// inNamespaces makes a command run with users, network, mounts and names of its own: there it may do what root may.
func inNamespaces(c *exec.Cmd) *exec.Cmd {
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return c
}

// programs builds the product, and puts it into a directory with its other names and the stand-ins.
func programs(t *testing.T) string {
	t.Helper()
	self, dir := ownPath(t), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "quorate"), "github.com/quorate/quorate/cmd/quorate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, target := range map[string]string{"etcdctl": "quorate", "systemctl": self, "scp": self, "chown": self} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// machine is a shell with directories of its own.
type machine struct {
	t     *testing.T
	name  string
	in    io.WriteCloser
	lines chan string
}

// page is the text of a page.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runBlocks runs blocks on machines and on that of the operator.
func runBlocks(t *testing.T, all []block, names ...string) {
	t.Helper()
	work, err := os.MkdirTemp(os.Getenv(insideVar), "machines")
	if err != nil {
		t.Fatal(err)
	}
	mount(t, "tmpfs", "none", work)
	mount(t, "proc", "none", "/proc")
	if len(names) > 0 {
		ip(t, "link set lo up")
		ip(t, "link add sites type bridge")
		ip(t, "addr add 10.0.0.100/24 dev sites")
		ip(t, "link set sites up")
	}
	machines := map[string]*machine{"admin": startMachine(t, work, "admin", 0)}
	for i, name := range names {
		machines[name] = startMachine(t, work, name, i+1)
	}
	for i, block := range all {
		on := []string{block.on}
		if block.on == "all machines" {
			on = names[:min(3, len(names))]
		}
		var running sync.WaitGroup
		for _, name := range on {
			m := machines[name]
			if m == nil {
				t.Fatalf("block %d runs on %q, which is no machine of the page", i+1, name)
			}
			running.Go(func() { m.run(block.script) })
		}
		running.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d blocks", len(all))
}

// block is a fenced block of a page.
type block struct{ on, script string }

// refusals are the lines whose command must fail, and say what stands in the comment. A shell that ends where a command fails
// passes over them otherwise.
var refusals = regexp.MustCompile(`(?m)^! (.*?) +# (.*)$`)

// masked are commands whose failure ends no shell. A loop that tries one thing after the other may have them.
var masked = regexp.MustCompile(`(?m)&&( [^b]|$)|\|\||^! [^#]*$`)

// blocks finds the blocks for bash. The first line says where they run. All other fenced blocks are an error: this page has
// nothing that no test runs.
func blocks(t *testing.T, text string) (all []block) {
	t.Helper()
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 0 {
			continue
		}
		kind, script, _ := strings.Cut(part, "\n")
		first, _, _ := strings.Cut(script, "\n")
		on, where := strings.CutPrefix(first, "# ")
		if kind != "bash" || !where {
			t.Fatalf("a block does not say where it runs:\n%s", part)
		}
		if masked.MatchString(script) {
			t.Fatalf("a shell passes over what fails before && or ||: write two lines:\n%s", script)
		}
		all = append(all, block{on, refusals.ReplaceAllString(script, `if out=$$($1 2>&1); then echo 'this should be refused'; exit 1; fi
case "$$out" in *"$2"*) ;; *) echo "$$out"; echo 'this is another refusal'; exit 1;; esac`)})
	}
	if len(all) == 0 {
		t.Fatal("the page has no commands")
	}
	return all
}

// startMachine starts a shell whose /etc, /var and /root are its own, and, with a number, its network: 10.0.0.N.
func startMachine(t *testing.T, work, name string, number int) *machine {
	t.Helper()
	dir := filepath.Join(work, name)
	script := `set -e -o pipefail
hostname ` + name + `
ulimit -c 0
for d in etc var root; do
  mkdir -p ` + dir + `/$d-up ` + dir + `/$d-work
  mount -t overlay none -o lowerdir=/$d,upperdir=` + dir + `/$d-up,workdir=` + dir + `/$d-work /$d
done
cd /root
`
	if number > 0 {
		script += fmt.Sprintf("ip link set lo up\nip addr add 10.0.0.%d/24 dev eth0\nip link set eth0 up\n", number)
	}
	unit, err := filepath.Abs("../../release/packaging/quorate.service")
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash")
	shell.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL}
	if number > 0 {
		shell.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	shell.Env = []string{"PATH=" + os.Getenv(insideVar) + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C",
		stateVar + "=" + dir, unitVar + "=" + unit}
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stdout, shell.Stderr = w, w
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := os.WriteFile(filepath.Join(dir, "pid"), fmt.Append(nil, shell.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if number > 0 {
		if err := os.Symlink(name, filepath.Join(work, fmt.Sprintf("10.0.0.%d", number))); err != nil {
			t.Fatal(err)
		}
		ip(t, fmt.Sprintf("link add to%d type veth peer name eth0 netns %d", number, shell.Process.Pid))
		ip(t, fmt.Sprintf("link set to%d master sites up", number))
	}
	m := &machine{t: t, name: name, in: in, lines: make(chan string)}
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			m.lines <- scanner.Text()
		}
		close(m.lines)
	}()
	m.run(script)
	return m
}

// blockEnds is what a shell says after a block.
const blockEnds = "the block has ended"

// run runs a script in the shell of the machine, which ends where a command fails.
func (m *machine) run(script string) {
	if _, err := io.WriteString(m.in, script+"\nprintf '\\n%s\\n' '"+blockEnds+"'\n"); err != nil {
		m.t.Errorf("%s: the shell takes no block: %v", m.name, err)
		return
	}
	var said strings.Builder
	for late := time.After(patience); ; {
		select {
		case line, more := <-m.lines:
			if line == blockEnds {
				m.t.Logf("%s:\n%s", m.name, &said)
				return
			}
			if !more {
				m.t.Errorf("%s: a command of this block failed:\n%s\nIt said:\n%s", m.name, script, &said)
				return
			}
			said.WriteString(line + "\n")
		case <-late:
			m.t.Errorf("%s: this block does not end:\n%s\nIt said:\n%s", m.name, script, &said)
			return
		}
	}
}

func mount(t *testing.T, kind, source, at string) {
	t.Helper()
	if err := unix.Mount(source, at, kind, 0, ""); err != nil {
		t.Fatalf("mount %s: %v", at, err)
	}
}

// ip runs the command of that name.
func ip(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", line, err, out)
	}
}
