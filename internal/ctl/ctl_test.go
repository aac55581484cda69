package ctl_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/testnet"
)

type result struct {
	status   int
	out, err string
}

func runIn(t *testing.T, ctx context.Context, environ []string, input string, args ...string) result {
	t.Helper()
	return runFor(t, ctx, ctl.Streams{Environ: environ}, input, args...)
}

func runFor(t *testing.T, ctx context.Context, s ctl.Streams, input string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	s.In, s.Out, s.Err = strings.NewReader(input), &out, &errs
	status := ctl.Run(ctx, args, s)
	return result{status, out.String(), errs.String()}
}

func (f *fakeMember) run(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t, t.Context(), []string{"QUORATE_ENDPOINTS=" + f.address}, "", args...)
}

// want compares a result: the output as a whole, the errors by a part of them.
func (r result) want(t *testing.T, status int, out, errPart string) {
	t.Helper()
	if r.status != status || r.out != out || !strings.Contains(r.err, errPart) || (errPart == "" && r.err != "") {
		t.Errorf("got status %d, output %q, errors %q; want %d, %q, …%q…", r.status, r.out, r.err, status, out, errPart)
	}
}

func TestRun_keys(t *testing.T) {
	f := startFake(t)
	f.run(t, "put", "a", "1").want(t, 0, "OK\n", "")
	runIn(t, t.Context(), []string{"ETCDCTL_ENDPOINTS=http://" + f.address}, "from input", "put", "ab").want(
		t, 0, "OK\n", "")
	f.run(t, "put", "b", "\xff", "-o", "json").want(t, 0, "{\"revision\":4}\n", "")
	f.run(t, "get", "a").want(t, 0, "a\n1\n", "")
	f.run(t, "get", "absent").want(t, 0, "", "")
	f.run(t, "get", "a", "--prefix").want(t, 0, "a\n1\nab\nfrom input\n", "")
	f.run(t, "get", "a", "b").want(t, 0, "a\n1\nab\nfrom input\n", "")
	f.run(t, "get", "ab", "--from-key", "--keys-only").want(t, 0, "ab\nb\n", "")
	f.run(t, "get", "a", "--prefix", "--limit=1", "--values-only").want(t, 0, "1\n", "1 of 2 keys")
	f.run(t, "get", "a", "--prefix", "--rev=2", "--count-only").want(t, 0, "1\n", "")
	f.run(t, "get", "b", "-o", "json").want(t, 0, `{"count":1,"kvs":[{"key":"b","value_base64":"/w==",`+
		`"create_revision":4,"mod_revision":4,"version":1}],"more":false,"revision":4}`+"\n", "")
	f.run(t, "del", "a", "--prefix").want(t, 0, "2\n", "")
	f.run(t, "del", "a", "-o", "json").want(t, 0, `{"deleted":0,"revision":6}`+"\n", "")
	f.run(t, "compact", "99").want(t, ctl.StatusRefused, "", "required revision is a future revision")
	f.run(t, "compact", "3").want(t, 0, "compacted revision 3\n", "")
	f.run(t, "get", "a", "--rev=2").want(t, ctl.StatusRefused, "", "quorate: mvcc: required revision has been compacted")
}

func TestRun_usage(t *testing.T) {
	f := startFake(t)
	for _, row := range []struct{ line, want string }{
		{"put", "write: quorate put KEY [VALUE]"},
		{"put a b --speed", "unknown flag: --speed; see quorate put --help"},
		{"put a b --lease=xyz", `"xyz" is not the id of a lease`},
		{"get a b --prefix", "do not go with an END"},
		{"get a --prefix --from-key", "exclude each other"},
		{"get a -o yaml", `--output "yaml": choose text or json`},
		{"get a --endpoints=https://a:1", "TLS is not supported yet"},
		{"get a --endpoints=a", "lacks a port: write a:2379"},
		{"get a --endpoints=,", "--endpoints names no member"},
		{"latency --count=0", "--count 0: choose 1 to 100000"},
		{"latency --concurrency=21", "--concurrency 21: choose 1 to --count, which is 20"},
		{"latency m1", "write: quorate latency"},
		{"compact now", `"now" is not a revision`},
		{"lease grant long", `"long" is not a number of seconds`},
		{"member", "member what? One of: add, apply, change, cordon, demote, drain, jobs, list, plan, promote, remove, replace, reset, uncordon, update, watch"},
		{"member lst", `member has no "lst"; did you mean list?`},
		{"member lst --help", `member has no "lst"; did you mean list?`},
		{"member jobs nonsense -h", `member jobs has no "nonsense"`},
		{"lease --help nonsense", `lease has no "nonsense"`},
		{"config print --nmae=a", "unknown flag --nmae; did you mean --name?"},
		{"dev now", "write server flags after --"},
	} {
		f.run(t, strings.Fields(row.line)...).want(t, ctl.StatusUsage, "", row.want)
	}
}

// Ensure that help is given for groups and commands, whatever arguments a command lacks or has.
func TestRun_help(t *testing.T) {
	f := startFake(t)
	for _, row := range []struct{ line, want string }{
		{"member --help", "List and change the members"}, {"member jobs --help", "quorate member jobs watch 3f2a"},
		{"member list --help", "quorate member list"}, {"put --help", "quorate put KEY"}, {"get a -h", "quorate get KEY"},
	} {
		got := f.run(t, strings.Fields(row.line)...)
		if got.status != 0 || got.err != "" || !strings.Contains(got.out, row.want) {
			t.Errorf("%s: got status %d, %q, output %q; want …%q…", row.line, got.status, got.err, got.out, row.want)
		}
	}
}

func TestRun_watch(t *testing.T) {
	f := startFake(t)
	f.run(t, "put", "a", "1")
	f.run(t, "del", "a")
	lines := watchLines(t, f, 2, "watch", "a", "--rev=1")
	if want := "2 PUT a 1\n3 DELETE a (was 1)\n"; lines != want {
		t.Errorf("got %q, want %q", lines, want)
	}
	lines = watchLines(t, f, 1, "watch", "", "--prefix", "--rev=2", "-o", "json")
	if want := `{"type":"PUT","revision":2,"key":"a","value":"1","create_revision":2,`; !strings.HasPrefix(lines, want) {
		t.Errorf("got %q, want %q…", lines, want)
	}
	f.run(t, "compact", "3")
	f.run(t, "watch", "a", "--rev=1").want(t, ctl.StatusRefused, "",
		"the history before revision 3 is compacted; watch with --rev 3 or later")
}

// watchLines runs a command that does not end by itself until it has printed n lines.
func watchLines(t *testing.T, f *fakeMember, n int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &lineCounter{stop: cancel, left: n}
	status := ctl.Run(ctx, args, ctl.Streams{Out: out, Err: io.Discard,
		Environ: []string{"QUORATE_ENDPOINTS=" + f.address}})
	if status != 130 {
		t.Errorf("%q: got status %d, want 130", args, status)
	}
	return out.text.String()
}

// lineCounter calls stop when enough lines were written.
type lineCounter struct {
	mu   sync.Mutex
	text bytes.Buffer
	stop func()
	left int
}

func (c *lineCounter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= bytes.Count(p, []byte("\n"))
	if c.left <= 0 {
		c.stop()
	}
	return c.text.Write(p)
}

func TestRun_lease(t *testing.T) {
	f := startFake(t)
	f.run(t, "lease", "grant", "60").want(t, 0, "beef\n", "")
	f.run(t, "lease", "list").want(t, 0, "beef\n", "")
	f.run(t, "lease", "list", "-o", "json").want(t, 0, `[{"id":"beef"}]`+"\n", "")
	f.run(t, "lease", "show", "beef").want(t, 0, "beef lasts 60 s of 60 s, 1 keys\n  k\n", "")
	f.run(t, "put", "k", "v", "--lease=beef").want(t, 0, "OK\n", "")
	f.run(t, "put", "k", "v", "--lease=dead").want(t, ctl.StatusRefused, "", "requested lease not found")
	f.run(t, "lease", "keepalive", "beef", "--once").want(t, 0, "beef lasts 60 s\n", "")
	f.run(t, "lease", "show", "beef").want(t, ctl.StatusRefused, "", "does not exist, or has expired")
	f.run(t, "lease", "revoke", "beef").want(t, ctl.StatusRefused, "", "requested lease not found")
	f.run(t, "lease", "grant", "5", "-o", "json").want(t, 0, `{"id":"beef","ttl_seconds":5}`+"\n", "")
	f.run(t, "lease", "revoke", "beef").want(t, 0, "", "revoked beef")
	f.run(t, "lease", "keepalive", "beef").want(t, ctl.StatusRefused, "", "requested lease not found")
}

// Ensure that what etcd's API can say works with a server that has no other.
func TestRun_memberOnEtcd(t *testing.T) {
	f := startFake(t)
	const head = "ID  NAME  ROLE     STATE        LAG  LAST-CONTACT  PEER-URLS              CLIENT-URLS\n"
	m1 := "a1  m1    voter    -            -    -             http://127.0.0.1:2380  http://" + f.address + "\n"
	f.run(t, "member", "add", "http://b:2380", "--learner", "--yes").want(t, 0,
		head+m1+"a2  -     learner  not started  -    -             http://b:2380          -\n",
		"added a2; start it with --initial-cluster-state existing and --initial-cluster "+
			"m1=http://127.0.0.1:2380,NAME=http://b:2380")
	f.run(t, "member", "update", "a2", "http://c:2380", "-y").want(t, 0,
		head+m1+"a2  -     learner  not started  -    -             http://c:2380          -\n", "")
	f.run(t, "member", "promote", "m1", "-y").want(t, ctl.StatusRefused, "", "can only promote a learner member")
	f.run(t, "member", "remove", "m9", "-y").want(t, ctl.StatusRefused, "", `no member is called "m9"; there are a1 (m1), a2 ()`)
	f.run(t, "member", "remove", "A2", "-y").want(t, 0,
		"ID  NAME  ROLE   STATE  LAG  LAST-CONTACT  PEER-URLS              CLIENT-URLS\n"+
			"a1  m1    voter  -      -    -             http://127.0.0.1:2380  http://"+f.address+"\n", "")
	f.run(t, "member", "list", "-o", "json").want(t, 0, `{"cluster_id":"1","members":[{"id":"161","name":"m1",`+
		`"peer_urls":["http://127.0.0.1:2380"],"client_urls":["http://`+f.address+`"],"role":"ROLE_VOTER","started":true}]}`+"\n", "")
	const none = "this server has no membership API of its own"
	f.run(t, "member", "demote", "m1", "-y").want(t, ctl.StatusRefused, "", none)
	f.run(t, "member", "remove", "m1", "m2", "-y").want(t, ctl.StatusRefused, "", none)
	f.run(t, "member", "remove", "m1", "--dry-run").want(t, ctl.StatusRefused, "", none)
	f.run(t, "member", "watch").want(t, ctl.StatusRefused, "", none)
}

// Ensure that status shows members that are down beside those that are up, and fails for scripts.
func TestRun_status(t *testing.T) {
	f := startFake(t)
	got := f.run(t, "status")
	if got.status != 0 || !strings.Contains(got.out, "leader  7     12     11       1    1         2.0 KiB  3.7.1") ||
		!strings.Contains(got.out, "m1 reports: memberID:161 alarm:NOSPACE") {
		t.Errorf("a leader alone: got %d\n%s", got.status, got.out)
	}
	f.members = append(f.members,
		&pb.Member{ID: 2, Name: "m2", ClientURLs: []string{"http://" + testnet.Address(t)}}, &pb.Member{ID: 3})
	got = f.run(t, "status", "--timeout=500ms")
	if got.status != ctl.StatusRefused || !strings.Contains(got.out, "m2 is down: connection refused") ||
		!strings.Contains(got.out, "3 is down: it was never started") {
		t.Errorf("two down: got %d\n%s", got.status, got.out)
	}
	f.members, f.leader = f.members[:1], 0
	got = f.run(t, "status")
	if got.status != ctl.StatusRefused || !strings.Contains(got.out, "the cluster has no leader") {
		t.Errorf("no leader: got %d\n%s", got.status, got.out)
	}
	got = f.run(t, "status", "-o", "json")
	if want := `[{"name":"m1","endpoint":"` + f.address + `","id":"a1","role":"no leader","term":7,`; got.status !=
		ctl.StatusRefused || !strings.HasPrefix(got.out, want) {
		t.Errorf("as JSON: got %d %s, want %s…", got.status, got.out, want)
	}
}

// Ensure that a process that waits is shown with what it waits for, as status and as the only one that is asked.
func TestRun_status_waiting(t *testing.T) {
	waiting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" { // the client of gRPC comes, too
			http.NotFound(w, r)
			return
		}
		http.Error(w, "[+]alive\n[-]member failed: it has \x1b[2Jlost its disk", http.StatusServiceUnavailable)
	}))
	defer waiting.Close()
	f := startFake(t)
	address := strings.TrimPrefix(waiting.URL, "http://")
	f.members = append(f.members, &pb.Member{ID: 2, Name: "m2", ClientURLs: []string{waiting.URL}})
	got := f.run(t, "status", "--timeout=500ms")
	if !strings.Contains(got.out, "m2 is down: member failed: it has [2Jlost its disk\n") {
		t.Errorf("got %d\n%s", got.status, got.out)
	}
	f.run(t, "get", "a", "--timeout=50ms", "--endpoints="+address).want(t, ctl.StatusUnreachable, "",
		"no answer from "+address+" within 50ms: "+address+" says: member failed: it has [2Jlost its disk")
}

// Ensure that a cluster without a leader whose members all answer is shown with the peer URL at which nobody listens.
func TestRun_status_deafPeer(t *testing.T) {
	f := startFake(t)
	deaf := "http://" + testnet.Address(t)
	f.members[0].PeerURLs, f.leader = []string{deaf}, 0
	got := f.run(t, "status")
	if want := "nobody listens, as seen from here, at peer URL " + deaf + " of m1 (connection refused)"; got.status !=
		ctl.StatusRefused || !strings.Contains(got.out, want) {
		t.Errorf("got %d\n%s\nwant %q", got.status, got.out, want)
	}
	f.members[0].PeerURLs = []string{"http://" + f.address}
	if got := f.run(t, "status"); !strings.Contains(got.out, "the members may not reach each other") {
		t.Errorf("got %d\n%s", got.status, got.out)
	}
}

// Ensure that a cluster that is not there is named, with what to try.
func TestRun_unreachable(t *testing.T) {
	address := testnet.Address(t)
	for _, args := range [][]string{
		{"get", "a"}, {"put", "a", "b"}, {"watch", "a"}, {"status", "-ojson"}, {"latency", "--count=1"}, {"member", "list"}, {"lease", "keepalive", "1"},
		{"member", "remove", "m1", "--yes"}, {"member", "watch"}, {"member", "jobs"},
		{"snapshot", "save", filepath.Join(t.TempDir(), "s")},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			t.Parallel() // each waits for somebody to listen
			got := runIn(t, t.Context(), nil, "", append(args, "--endpoints="+address)...)
			got.want(t, ctl.StatusUnreachable, "", "cannot reach "+address+": connection refused\nIs it running? Start a "+
				"cluster with `quorate dev`")
		})
	}
}

// Ensure that a cluster that listens but does not answer is told apart from one that is not there.
func TestRun_noAnswer(t *testing.T) {
	f := startFake(t)
	f.mute = true
	f.run(t, "get", "a", "--timeout=50ms").want(t, ctl.StatusUnreachable, "",
		"no answer from "+f.address+" within 50ms: it may have no leader")
}

func TestRun_snapshot(t *testing.T) {
	f := startFake(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	f.run(t, "snapshot", "save", path).want(t, 0, "saved "+path+", 78.2 KiB\n", "")
	if info, err := os.Stat(path); err != nil || info.Size() != 80_032 {
		t.Errorf("got %v, %v; want 80032 bytes", info, err)
	}
	f.damaged = true
	f.run(t, "snapshot", "save", filepath.Join(dir, "t.db")).want(t, ctl.StatusRefused, "",
		"save the snapshot: the checksum at its end does not match")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("a damaged transfer left files behind: %v", entries)
	}
	f.run(t, "snapshot", "save", path, "--endpoints=a:1,b:1").want(t, ctl.StatusUsage, "", "a snapshot is of one member")
}

func TestRun_config(t *testing.T) {
	t.Chdir(t.TempDir())
	got := runIn(t, t.Context(), []string{"ETCD_NAME=m9", "ETCD_WHAT=1"}, "", "config", "print", "--max-learners=3")
	if got.status != 0 || !strings.Contains(got.out, "name: m9\n") || !strings.Contains(got.out, "max-learners: 3\n") ||
		got.err != "warning: unknown environment variable ETCD_WHAT is ignored\n" {
		t.Errorf("got %+v", got)
	}
	runIn(t, t.Context(), nil, "", "config", "print", "--cert-file=x").want(t, ctl.StatusRefused, "",
		"--cert-file needs --key-file")
}

func TestKnown(t *testing.T) {
	for word, want := range map[string]bool{"dev": true, "help": true, "completion": true, "__complete": true,
		"serve": false, "--name": false, "": false} {
		if got := ctl.Known(word); got != want {
			t.Errorf("%q: got %v, want %v", word, got, want)
		}
	}
	if got := ctl.Suggest("memebr"); got != "member" {
		t.Errorf("got %q, want member", got)
	}
}
