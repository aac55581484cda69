package process_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
)

// single is one member on its own whose log goes to a file, so that its standard error has only its last words.
type single struct {
	*cluster
	*node
}

func newSingle(t *testing.T, binary, dir string) *single {
	t.Helper()
	n := &node{name: "m1", client: "http://" + testnet.Address(t), peer: testnet.Address(t), dir: dir,
		log: filepath.Join(t.TempDir(), "log")}
	return &single{&cluster{t: t, binary: binary}, n}
}

// flags are those of a member that listens at its addresses but says that it is found at fixed ones, from which its
// identity is derived.
func (s *single) flags(more ...string) []string {
	return append([]string{"--name=m1", "--data-dir=" + s.dir, "--log-outputs=" + s.log,
		"--listen-client-urls=" + s.client, "--advertise-client-urls=" + s.client, "--listen-peer-urls=http://" + s.peer,
		"--initial-advertise-peer-urls=http://127.0.0.1:39999", "--initial-cluster=m1=http://127.0.0.1:39999"}, more...)
}

// up starts the member and gives a client; down ends it.
func (s *single) up() *clientv3.Client {
	s.t.Helper()
	s.begin()
	s.waitReady(s.node)
	client := s.connect(s.node)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *single) begin() {
	s.t.Helper()
	s.cmd = exec.Command(s.binary, s.flags()...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited, cmd := make(chan struct{}), s.cmd
	s.exited = exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.t.Cleanup(s.kill)
}

// lastWords runs quorate to its end and checks that it ends with the status and one line on standard error that has
// all of the words.
func lastWords(t *testing.T, binary string, status int, words []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	var said strings.Builder
	command.Stderr = &said
	err := command.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != status {
		t.Errorf("got %v, want status %d; it said %q", err, status, said.String())
	}
	checkLine(t, said.String(), words)
}

const lineLimit = 900 // with the long names of directories that tests have

func checkLine(t *testing.T, said string, words []string) {
	t.Helper()
	if !strings.HasPrefix(said, "quorate: ") || strings.Count(said, "\n") != 1 || len(said) > lineLimit {
		t.Errorf("got %q, want one line", said)
	}
	for _, want := range words {
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want %q in it", said, want)
		}
	}
}

// TestBadInput gives the program what it cannot work with, and faults that it cannot heal. Demanded is one line that
// says what is wrong and what to do, a status that is not zero, and that nothing is damaged.
func TestBadInput(t *testing.T) {
	binary := buildBinary(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, string)
	}{
		{"flags", badInputFlags}, {"data", badInputData}, {"elsewhere", badInputElsewhere},
		{"requests", badInputRequests}, {"crossed clusters", badInputCrossed}, {"killed starts", badInputKilledStart},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, binary) })
	}
}

// badInputFlags asks for what cannot be: the answer is a line that names the flag, and status 2.
func badInputFlags(t *testing.T, binary string) {
	for _, row := range []struct {
		name, args, want string
	}{
		{"an unknown flag", "--no-such", "unknown flag --no-such"},
		{"a misspelt flag", "--nmae=a", "did you mean --name?"},
		{"a flag without its value", "--name", "flag needs an argument: --name"},
		{"a word that is no command", "stauts", "did you mean status?"},
		{"a duration that is none", "--heartbeat-interval=soon", "must be a number of milliseconds"},
		{"a URL without scheme", "--initial-cluster=m1=host", "lacks a scheme"},
		{"timeouts that contradict each other", "--heartbeat-interval=100 --election-timeout=100", "at least 5 times"},
		{"a certificate without key", "--cert-file=x", "--cert-file needs --key-file"},
		{"a cluster without this member", "--name=a --initial-cluster=b=http://127.0.0.1:1", "does not name this member"},
		{"two faults at once", "--name=a,b --cert-file=x", "two faults: (1) --name"},
		{"log and data in one directory", "--data-dir=d --wal-dir=d", "must be different directories"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			lastWords(t, binary, 2, []string{row.want}, strings.Fields(row.args)...)
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("the refused start left %v, %v", left, err)
			}
		})
	}
}

// damage spoils a part of a member's data; what it does is a file operation on the one file that matches.
type damage struct {
	name    string
	pattern string // below the data directory's member; the last match is taken, or the first if first is set
	first   bool
	spoil   func(path string) error
	want    []string
}

func remove(path string) error { return os.RemoveAll(path) }

func empty(path string) error { return os.Truncate(path, 0) }

func write(text string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

// flip inverts n bytes at offset; a negative offset counts from the end.
func flip(offset int64, n int) func(string) error {
	return func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if offset < 0 {
			offset += int64(len(content))
		}
		for i := range n {
			content[int(offset)+i] ^= 0xff
		}
		return os.WriteFile(path, content, 0o600)
	}
}

func cut(size int64) func(string) error {
	return func(path string) error { return os.Truncate(path, size) }
}

func rename(suffix string) func(string) error {
	return func(path string) error { return os.Rename(path, filepath.Join(filepath.Dir(path), suffix)) }
}

// clear empties a directory.
func clear(path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
	}
	return err
}

var damages = []damage{
	{"the head of the log is damaged", "wal/*.wal", true, flip(2, 2), []string{"log is corrupt", "replace the member"}},
	{"the log is of a newer format", "wal/*.wal", true, flip(8, 1), []string{"was written by a later build", "nothing was changed"}},
	{"the first segment is damaged", "wal/*.wal", true, flip(8<<20, 4), []string{"log is corrupt", "at offset"}},
	{"the first segment is cut", "wal/*.wal", true, cut(5 << 20), []string{"log is corrupt", "at offset"}},
	{"the first segment is missing", "wal/*.wal", true, remove, []string{"are missing, and so is the segment before"}},
	{"the middle of the last segment is damaged", "wal/*.wal", false, flip(5<<20, 4), []string{"was written after it"}},
	{"the last segment is empty", "wal/*.wal", false, empty, []string{"log is corrupt", "replace the member"}},
	{"the last segment is missing so that the store is ahead", "wal/*.wal", false, remove, []string{"older than the " +
		"rest", "replace this member"}},
	{"the log is missing", "wal", false, remove, []string{"give --wal-dir if", "Only if the log is lost for ever: "}},
	{"the log is an empty directory", "wal", false, clear, []string{"give --wal-dir if", "Only if the log is lost for ever: "}},
	{"the boots file is damaged", "boots", false, write("two\n"), []string{"checksum does not match", "is damaged"}},
	{"the boot counter is missing", "boots", false, remove, []string{"boots is missing: correct"}},
	{"a table is missing", "stores/*/*.sst", true, remove, []string{"store is corrupt", "replace this member"}},
	{"a table is cut", "stores/*/*.sst", false, cut(100), []string{"store is corrupt", "replace this member"}},
	{"the table with the marks is damaged", "stores/*/*.sst", false, flip(-40, 30), []string{"store is corrupt"}},
	{"the manifest is damaged", "stores/*/MANIFEST-*", false, flip(3, 4), []string{"store is corrupt", "replace this member"}},
	{"the manifest is cut", "stores/*/MANIFEST-*", false, cut(40), []string{"store is corrupt", "replace this member"}},
	{"the manifest is missing", "stores/*/MANIFEST-*", false, remove, []string{"store is corrupt", "replace this member"}},
	{"the store's marker is missing", "stores/*/marker.manifest*", false, remove, []string{"no marker of a manifest"}},
	{"the store's marker is garbled", "stores/*/marker.manifest*", false, rename("marker.manifest.x"),
		[]string{"store is corrupt"}},
	{"the store is of a newer format", "stores/*/marker.format-version*", false,
		rename("marker.format-version.000099.999"), []string{"was written by a later build", "nothing was changed"}},
	{"the store is missing", "stores/[0-9]*", false, remove, []string{"store is missing: replace this member"}},
	{"all stores are missing", "stores", false, remove, []string{"store is missing: replace this member"}},
	{"the store is an empty directory", "stores/[0-9]*", false, clear, []string{"has lost its contents: replace this member"}},
	{"it is not known which store counts", "stores/CURRENT", false, write("x"), []string{"which store counts is not known"}},
	{"the member's directory is a file", "", false, func(path string) error {
		return errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600))
	}, []string{"not a directory"}},
}

// badInputData spoils one thing in a member's data: the member says what it is, and with the thing restored it
// has all its data, so the refused start has damaged nothing.
func badInputData(t *testing.T, binary string) {
	sound := filepath.Join(t.TempDir(), "sound")
	fill(t, binary, sound)
	for _, row := range damages {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d")
			copyTree(t, sound, dir)
			path, original := pick(t, filepath.Join(dir, "member"), row.pattern, row.first), filepath.Join(dir, "kept")
			if _, err := os.Stat(path); err == nil {
				copyTree(t, path, original)
			}
			if err := row.spoil(path); err != nil {
				t.Fatal(err)
			}
			before := precious(t, dir)
			s := newSingle(t, binary, dir)
			lastWords(t, binary, 1, row.want, s.flags()...)
			lost := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(precious(t, dir), name) })
			if len(lost) > 0 {
				t.Errorf("the refused start removed %v", lost)
			}
			restore(t, original, path)
			s = newSingle(t, binary, dir)
			checkFilled(t, s.up())
		})
	}
	t.Run("log and boot counter are missing", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "d")
		copyTree(t, sound, dir)
		for _, name := range []string{"wal", "boots"} {
			if err := os.Rename(filepath.Join(dir, "member", name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		s := newSingle(t, binary, dir)
		lastWords(t, binary, 1, []string{"holds data but", "are missing: correct --data-dir or --wal-dir"}, s.flags()...)
		for _, name := range []string{"wal", "boots"} {
			restore(t, filepath.Join(dir, name), filepath.Join(dir, "member", name))
		}
		checkFilled(t, s.up())
	})
}

// badInputElsewhere starts a member whose data, ports or place are another's.
func badInputElsewhere(t *testing.T, binary string) {
	dir := filepath.Join(t.TempDir(), "d")
	holder := newSingle(t, binary, dir)
	holder.up()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(name, want string, args ...string) {
		t.Run(name, func(t *testing.T) {
			own := newSingle(t, binary, filepath.Join(t.TempDir(), "other"))
			lastWords(t, binary, 1, []string{want}, own.flags(args...)...)
		})
	}
	refused("a second process on the data", "is in use by another process, mostly this member itself: stop "+
		"it", "--data-dir="+dir)
	refused("the client port is taken", "already in use; stop the process", "--listen-client-urls="+holder.client)
	refused("the peer port is taken", "stop the process that listens", "--listen-peer-urls=http://"+holder.peer)
	refused("an address of another machine", "must name an address of this machine",
		"--listen-client-urls=http://192.0.2.1:33333")
	refused("the data directory is a file", "cannot be created: not a directory", "--data-dir="+file)
	holder.kill()
	refused("the data of another member", `belongs to member "m1", not to "m9"`, "--data-dir="+dir, "--name=m9",
		"--initial-cluster=m9=http://127.0.0.1:39999")
	refused("a --wal-dir beside which the log lies", "a log lies in "+filepath.Join(dir, "member", "wal")+": drop --wal-dir",
		"--data-dir="+dir, "--wal-dir="+t.TempDir())
	refused("the data of another cluster", "set both flags back to what they were, or remove them", "--data-dir="+dir,
		"--initial-cluster-token=another")
	holder.up()
}

// badInputRequests sends what is too large: it is refused in etcd's words, and the member goes on.
func badInputRequests(t *testing.T, binary string) {
	s := newSingle(t, binary, filepath.Join(t.TempDir(), "d"))
	client := s.up()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "large", strings.Repeat("x", 1_600_000)); !errors.Is(err, rpctypes.ErrRequestTooLarge) {
		t.Errorf("a value of 1.6 MB: got %v, want %v", err, rpctypes.ErrRequestTooLarge)
	}
	if _, err := client.Put(ctx, "larger", strings.Repeat("x", 3<<20)); err == nil ||
		!strings.Contains(err.Error(), "larger than max") {
		t.Errorf("a value of 3 MiB: got %v, want a refusal", err)
	}
	ops := make([]clientv3.Op, 129)
	for i := range ops {
		ops[i] = clientv3.OpPut(fmt.Sprint("op", i), "")
	}
	if _, err := client.Txn(ctx).Then(ops...).Commit(); !errors.Is(err, rpctypes.ErrTooManyOps) {
		t.Errorf("129 operations: got %v, want %v", err, rpctypes.ErrTooManyOps)
	}
	got, err := client.Get(ctx, "", clientv3.WithPrefix())
	if err != nil || got.Count != 0 {
		t.Errorf("after the refusals: got %v, %v, want nothing", got, err)
	}
}

// badInputCrossed lets members of two clusters take each other for peers: they say so, and neither cluster
// takes a vote or an entry of the other.
func badInputCrossed(t *testing.T, binary string) {
	a, b := newSingle(t, binary, filepath.Join(t.TempDir(), "a")), newSingle(t, binary, filepath.Join(t.TempDir(), "b"))
	for _, s := range []*single{a, b} {
		s.run(s.node, "--name="+s.peer, "--data-dir="+s.dir, "--listen-client-urls="+s.client,
			"--advertise-client-urls="+s.client, "--listen-peer-urls=http://"+s.peer,
			"--initial-advertise-peer-urls=http://"+s.peer, "--initial-cluster-token="+s.peer,
			fmt.Sprintf("--initial-cluster=%s=http://%s,%s=http://%s", a.peer, a.peer, b.peer, b.peer))
		t.Cleanup(s.kill)
	}
	for _, s := range []*single{a, b} {
		until(t, "the word that its peer is of another cluster", func(context.Context) bool {
			return strings.Contains(tail(s.log, 1<<20), "another cluster")
		})
		if strings.Contains(tail(s.log, 1<<20), "became leader") {
			t.Errorf("a member leads with a foreign vote:\n%s", tail(s.log, 2000))
		}
	}
}

// badInputKilledStart kills a member at any point of its first starts, and then of its restarts under load.
func badInputKilledStart(t *testing.T, binary string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSingle(t, binary, "")
	for range 3 { // clusters, each killed several times before it may live
		s.dir = filepath.Join(t.TempDir(), fmt.Sprint(random.Uint64()))
		for range 4 {
			s.begin()
			select {
			case <-time.After(time.Duration(random.IntN(120)) * time.Millisecond):
			case <-s.exited:
				t.Fatalf("a start after a kill was refused:\n%s", tail(s.log, 1000))
			}
			s.kill()
		}
		client := s.up()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if _, err := client.Put(ctx, "k", "v"); err != nil {
			t.Fatal(err)
		}
		s.kill()
		for range 3 {
			s.begin()
			last(time.Duration(random.IntN(60)) * time.Millisecond)
			s.kill()
		}
		if got, err := s.up().Get(ctx, "k"); err != nil || len(got.Kvs) != 1 {
			t.Fatalf("got %v, %v, want the value that was acknowledged", got, err)
		}
		cancel()
		s.kill()
	}
}
