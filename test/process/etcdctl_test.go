package process_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// etcdctlLines are command lines of etcdctl, run one after the other, with what they read. Together they have every command.
var etcdctlLines = []struct{ line, input string }{
	{line: "put a 1"}, {line: "put b 2 --prev-kv"}, {line: "put b 3 --prev-kv"}, {line: "put c", input: "from the input"},
	{line: "put a --ignore-value"}, {line: "put none --ignore-value"}, {line: "put"}, {line: "put a 1 --lease=zz"},
	{line: "get a"}, {line: "get a c"}, {line: "get a --from-key"}, {line: "get --prefix b --keys-only"}, {line: "get none"},
	{line: "get a --from-key --order=DESCEND --sort-by=MODIFY --limit=2"}, {line: "get a --rev=2"}, {line: "get a --rev=999"},
	{line: "get a --print-value-only"}, {line: "get a --hex"}, {line: "get a --count-only -w fields"}, {line: "get a --consistency=s"},
	{line: "get a --min-mod-rev=3 --prefix"}, {line: "get a -w fields"}, {line: "get a -w bogus"},
	{line: "get"}, {line: "get a --prefix --from-key"}, {line: "get a --stream"},
	{line: "txn", input: "value(\"a\") = \"1\"\n\nput d 4\nget a\n\nput d 5\n\n"}, {line: "txn -i", input: "mod(\"a\") < \"1\"\n\n\nget b\n\n"},
	{line: "watch a --rev=2 -- sh -c exit${IFS}7"}, {line: "watch -i", input: "bogus\n"},
	{line: "del d"}, {line: "del b c --prev-kv"}, {line: "del"}, {line: "compaction 4"}, {line: "compaction 4"}, {line: "compaction x"},
	{line: "lease grant 600"}, {line: "lease grant x"}, {line: "lease list"}, {line: "lease timetolive 1234 --keys"},
	{line: "lease keep-alive --once 1234"}, {line: "lease revoke 1234"},
	{line: "member list"}, {line: "member list -w table"}, {line: "member list --hex"}, {line: "member list -w fields"},
	{line: "member add m9"}, {line: "member remove zz"}, {line: "member update 1"}, {line: "member promote 1"},
	{line: "endpoint health"}, {line: "endpoint status"}, {line: "endpoint status -w table"}, {line: "endpoint status -w fields"},
	{line: "endpoint hashkv"},
	{line: "move-leader 1"}, {line: "defrag"}, {line: "alarm list"}, {line: "alarm disarm"},
	{line: "downgrade validate x"}, {line: "downgrade validate 3.5"}, {line: "downgrade cancel"},
	{line: "lock l echo held"}, {line: "make-mirror"}, {line: "snapshot save"},
	{line: "user add root:pw"}, {line: "user add u --interactive=false", input: "pw\n"}, {line: "user add v --no-password"},
	{line: "user add u:pw"}, {line: "user list"}, {line: "role add r"}, {line: "role grant-permission r readwrite a z"},
	{line: "role grant-permission r write p --prefix"}, {line: "role get r"}, {line: "role list"}, {line: "user grant-role u r"},
	{line: "user grant-role root root"}, {line: "user get u --detail"}, {line: "user passwd u --interactive=false", input: "pw2\n"},
	{line: "auth status"}, {line: "auth enable"}, {line: "get a"}, {line: "--user=u:pw2 get a"}, {line: "--user u --password bad get a"},
	{line: "--user=u:pw2 role get r"}, {line: "--user=root:pw auth disable"}, {line: "role revoke-permission r a z"},
	{line: "user revoke-role u r"}, {line: "role delete r"}, {line: "user delete u"},
	{line: "bogus"}, {line: "get a --bogus"}, {line: "lease keep"},
	{line: "put a 1 --prev-kv -w json"}, {line: "get a --prefix -w json"}, {line: "del c -w json"}, {line: "lease grant 600 -w json"},
	{line: "txn -w json", input: "\nget a\nput b 2\n\n\n"}, {line: "member list -w json"}, {line: "member list -w json --hex"},
	{line: "endpoint status -w json"}, {line: "endpoint health -w json"}, {line: "role add q -w json"},
	{line: "role grant-permission q read a z -w json"}, {line: "role get q -w json"}, {line: "user add w:pw -w json"},
	{line: "user get w -w json"}, {line: "alarm list -w json"}, {line: "downgrade cancel -w json"}, {line: "auth status -w json"},
}

// Ensure that this program, called etcdctl, prints what the stock one prints and ends as it does, for every command.
func TestEtcdctl(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds etcdctl")
	}
	stock := filepath.Join(t.TempDir(), "etcdctl")
	build := exec.Command("go", "build", "-o", stock, "go.etcd.io/etcd/etcdctl/v3")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ours := filepath.Join(t.TempDir(), "etcdctl")
	if err := os.Symlink(buildBinary(t), ours); err != nil {
		t.Fatal(err)
	}
	want, got := startCluster(t, 1).nodes[0], startCluster(t, 1).nodes[0]
	for i, row := range etcdctlLines {
		var right, out string
		var both sync.WaitGroup
		both.Go(func() { right = runEtcdctl(stock, want, row.line, row.input) })
		both.Go(func() { out = runEtcdctl(ours, got, row.line, row.input) })
		both.Wait()
		if out != right {
			t.Errorf("line %d, etcdctl %s:\ngot  %s\nwant %s", i, row.line, out, right)
		}
	}
}

// runEtcdctl returns what a command line printed, without what differs from cluster to cluster and run to run, and how it ended.
func runEtcdctl(program string, n *node, line, input string) string {
	cmd := exec.Command(program, strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "ETCDCTL_ENDPOINTS="+n.client)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, exit := errors.AsType[*exec.ExitError](err); !exit {
			return err.Error()
		}
	}
	said := out.String()
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "{") { // a log, which tells addresses in memory
			said += line
		}
	}
	address := strings.TrimPrefix(n.client, "http://")
	said = strings.NewReplacer(n.client, "CLIENT", address, "CLIENT", n.proxy.address(), "PEER").Replace(said)
	said = varying.ReplaceAllString(said, "#") + cmd.ProcessState.String()
	if strings.Contains(said, "│") {
		said = widths.ReplaceAllString(said, "$1$2")
	}
	return said
}

// Bytes that the width of a column adds to a table: an id of 15 digits makes its column narrower than one of 16.
var widths = regexp.MustCompile(`(─)─+|( ) +`)

// Ids, hashes, sizes, times, terms and indexes of the log: on a slow machine a member has logged one entry more than the other, as
// of the time that goes by.
var varying = regexp.MustCompile(`[0-9a-f]{12,}|[0-9.]+ ?(µs|ms|s|kB|MB|B)\b|` +
	`"(hash|dbSize|dbSizeInUse|raftIndex|raftAppliedIndex|raft_term|raftTerm|took)":"?[0-9a-zµ.]+"?|` +
	`"(RaftTerm|RaftIndex|RaftAppliedIndex|DBSize|DBSizeInUse)" : [0-9]+|` +
	`, [0-9]+, [0-9]+, [0-9]+, ,|│ +[0-9]+ │ +[0-9]+ │ +[0-9]+ │`) // term, index, applied index: in a line, in a table
