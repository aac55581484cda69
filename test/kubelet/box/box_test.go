package box

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// A command beside a container has its root, its host name, its user and its variables, reads what it is given, and its exit
// status is told.
func TestExec(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it wants root")
	}
	network, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	spec := Spec{Root: t.TempDir(), Hostname: "inside", Env: []string{"PATH=/bin:/usr/bin", "COLOUR=red"}, UID: 65532,
		GID: 65532, Files: map[string]string{"/etc/own": "its own\n"}, Command: []string{"sleep", "60"}}
	for _, directory := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		if _, err := os.Stat(directory); err == nil {
			spec.Mounts = append(spec.Mounts, Mount{Source: directory, Target: directory, ReadOnly: true})
		}
	}
	var failed bytes.Buffer
	started, err := Start(spec, network, Streams{Err: &failed})
	if err != nil {
		t.Skipf("namespaces cannot be made here: %v", err)
	}
	defer func() {
		started.Signal(syscall.SIGKILL)
		started.Wait()
		if failed.Len() > 0 {
			t.Errorf("the container says: %s", &failed)
		}
	}()
	if runs, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", started.PID())); err != nil || string(runs) != "sleep\n" {
		t.Errorf("a container that was started executes %q, %v: its root may be another one", runs, err)
	}
	spec.Command = []string{"sh", "-c", "cat; cat /etc/own; uname -n; id -u; echo $COLOUR; echo fault >&2; exit 7"}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(write, strings.Repeat("0123456789abcdef", 1<<16))
		write.Close()
	}()
	var out, fault bytes.Buffer
	command, err := Exec(started, spec, network, Streams{In: read, Out: &out, Err: &fault})
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	code := command.Wait()
	want := strings.Repeat("0123456789abcdef", 1<<16) + "its own\ninside\n65532\nred\n"
	if code != 7 || fault.String() != "fault\n" || out.String() != want {
		t.Errorf("it ends with %d, says %q, and %d bytes that end with %q; want 7, a fault, and %d bytes", code, fault.String(),
			out.Len(), out.String()[max(0, out.Len()-60):], len(want))
	}
}
