package ctl_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

func (f *fakeMember) run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.RunAt(t, f.address, args...)
}

func TestRun_keys(t *testing.T) {
	f := startFake(t)
	f.run(t, "put", "a", "1").Want(t, 0, "OK\n", "")
	ctltest.Run(t, t.Context(), command.Streams{Environ: []string{"ETCDCTL_ENDPOINTS=http://" + f.address}}, "from "+
		"input", "put", "ab").Want(
		t, 0, "OK\n", "")
	f.run(t, "put", "b", "\xff", "-o", "json").Want(t, 0, "{\"revision\":4}\n", "")
	f.run(t, "get", "a").Want(t, 0, "a\n1\n", "")
	f.run(t, "get", "absent").Want(t, 0, "", "")
	f.run(t, "get", "a", "--prefix").Want(t, 0, "a\n1\nab\nfrom input\n", "")
	f.run(t, "get", "a", "b").Want(t, 0, "a\n1\nab\nfrom input\n", "")
	f.run(t, "get", "ab", "--from-key", "--keys-only").Want(t, 0, "ab\nb\n", "")
	f.run(t, "get", "a", "--prefix", "--limit=1", "--values-only").Want(t, 0, "1\n", "1 of 2 keys")
	f.run(t, "get", "a", "--prefix", "--rev=2", "--count-only").Want(t, 0, "1\n", "")
	f.run(t, "get", "b", "-o", "json").Want(t, 0, `{"count":1,"kvs":[{"key":"b","value_base64":"/w==",`+
		`"create_revision":4,"mod_revision":4,"version":1}],"more":false,"revision":4}`+"\n", "")
	f.run(t, "del", "a", "--prefix").Want(t, 0, "2\n", "")
	f.run(t, "del", "a", "-o", "json").Want(t, 0, `{"deleted":0,"revision":6}`+"\n", "")
	f.run(t, "compact", "99").Want(t, command.StatusRefused, "", "required revision is a future revision")
	f.run(t, "compact", "3").Want(t, 0, "compacted revision 3\n", "")
	f.run(t, "get", "a", "--rev=2").Want(t, command.StatusRefused, "", "quorate: mvcc: required revision has been compacted")
}

func TestRun_usage(t *testing.T) {
	f := startFake(t)
	for _, row := range []struct{ line, want string }{
		{"put", "usage: quorate put KEY [VALUE]"},
		{"put a b --speed", "unknown flag: --speed; see quorate put --help"},
		{"put a b --lease=xyz", `"xyz" is not the id of a lease`},
		{"get a b --prefix", "do not go with an END"},
		{"get a --prefix --from-key", "exclude each other"},
		{"get a -o yaml", `--output "yaml": choose text or json`},
		{"get a --endpoints=https://a:1,http://b:1", "name all members with https"},
		{"get a --user=x", "needs a password"},
		{"get a --password=x", "needs --user"},
		{"get a --user=app:x --password=y", "--user NAME:PASSWORD and --password name two passwords"},
		{"get a --cert=x", "--cert and --key need each other"},
		{"get a --cacert=/nowhere", "--cacert /nowhere: no such file or directory"},
		{"get a --endpoints=a", "lacks a port: write a:2379"},
		{"get a --endpoints=htp://a:1", "endpoint htp://a:1: htp is no scheme of a member: write http://a:1, or https://a:1 " +
			"for TLS"},
		{"get a --endpoints=http://a:1/v3", "endpoint http://a:1/v3 says more than a host and a port: write a:1"},
		{"get a --endpoints=,", "--endpoints names no member"},
		{"latency --count=0", "--count 0: choose 1 to 100000"},
		{"latency --concurrency=21", "--concurrency 21: choose 1 to --count, which is 20"},
		{"latency m1", "usage: quorate latency"},
		{"compact now", `"now" is not a revision`},
		{"lease grant long", `"long" is not a number of seconds`},
		{"member", "member what? One of: add, apply, change, cordon, demote, drain, jobs, list, plan, promote, remove, " +
			"replace, reset, scale, uncordon, update, watch"},
		{"member lst", `member has no "lst"; did you mean list?`},
		{"member lst --help", `member has no "lst"; did you mean list?`},
		{"member jobs nonsense -h", `member jobs has no "nonsense"`},
		{"lease --help nonsense", `lease has no "nonsense"`},
		{"help member nonsense", `member has no "nonsense"`}, {"help member lst", `member has no "lst"; did you mean list?`},
		{"help nonsense", `unknown command "nonsense"`}, {"help membr", `unknown command "membr"; did you mean member?`},
		{"config print --nmae=a", "unknown flag --nmae; did you mean --name?"},
		{"dev now", "write server flags after --"},
	} {
		f.run(t, strings.Fields(row.line)...).Want(t, command.StatusUsage, "", row.want)
	}
}

// Ensure that a password of the environment that contradicts a flag is named by its variable.
func TestRun_passwordOfEnvironment(t *testing.T) {
	f := startFake(t)
	s := command.Streams{Environ: []string{"ETCDCTL_ENDPOINTS=" + f.address, "QUORATE_PASSWORD=y"}}
	ctltest.Run(t, t.Context(), s, "", "get", "a", "--user=app:x").Want(t, command.StatusUsage, "",
		"--user NAME:PASSWORD and QUORATE_PASSWORD of the environment name two passwords")
	ctltest.Run(t, t.Context(), s, "", "get", "a", "--user=app:x", "--password=x").Want(t, 0, "", "")
}

// Ensure that a refusal for want of permission names the user and what to do.
func TestRun_permissionDenied(t *testing.T) {
	f := startFake(t)
	f.denied = true
	f.run(t, "put", "a", "1", "--user=app:x").Want(t, command.StatusRefused, "",
		"permission denied: user app has no role that allows it. Keys need `quorate role grant-permission ROLE")
	f.run(t, "put", "a", "1").Want(t, command.StatusRefused, "", "permission denied: a client without --user has no role")
}

// Ensure that help is given for groups and commands, whatever arguments a command lacks or has.
func TestRun_help(t *testing.T) {
	f := startFake(t)
	for _, row := range []struct{ line, want string }{
		{"help member", "List and change the members"}, {"help member list", "quorate member list"},
		{"help put a b", "quorate put KEY"}, {"help", "Usage"},
		{"member --help", "List and change the members"}, {"member jobs --help", "quorate member jobs watch 3f2a"},
		{"member list --help", "quorate member list"}, {"put --help", "quorate put KEY"}, {"get a -h", "quorate get KEY"},
	} {
		got := f.run(t, strings.Fields(row.line)...)
		if got.Status != 0 || got.Err != "" || !strings.Contains(got.Out, row.want) {
			t.Errorf("%s: got status %d, %q, output %q; want …%q…", row.line, got.Status, got.Err, got.Out, row.want)
		}
	}
}

func TestRun_watch(t *testing.T) {
	f := startFake(t)
	f.run(t, "put", "a", "1")
	f.run(t, "del", "a")
	lines := ctltest.Lines(t, f.address, 2, "watch", "a", "--rev=1")
	if want := "2 PUT a 1\n3 DELETE a (was 1)\n"; lines != want {
		t.Errorf("got %q, want %q", lines, want)
	}
	lines = ctltest.Lines(t, f.address, 1, "watch", "", "--prefix", "--rev=2", "-o", "json")
	if want := `{"type":"PUT","revision":2,"key":"a","value":"1","create_revision":2,`; !strings.HasPrefix(lines, want) {
		t.Errorf("got %q, want %q…", lines, want)
	}
	f.run(t, "compact", "3")
	f.run(t, "watch", "a", "--rev=1").Want(t, command.StatusRefused, "",
		"the history before revision 3 is compacted; watch with --rev 3 or later")
}

func TestRun_lease(t *testing.T) {
	f := startFake(t)
	f.run(t, "lease", "grant", "60").Want(t, 0, "beef\n", "")
	f.run(t, "lease", "list").Want(t, 0, "beef\n", "")
	f.run(t, "lease", "list", "-o", "json").Want(t, 0, `[{"id":"beef"}]`+"\n", "")
	f.run(t, "lease", "show", "beef").Want(t, 0, "beef lasts 60 s of 60 s, 1 key\n  k\n", "")
	f.run(t, "put", "k", "v", "--lease=beef").Want(t, 0, "OK\n", "")
	f.run(t, "put", "k", "v", "--lease=dead").Want(t, command.StatusRefused, "", "requested lease not found")
	f.run(t, "lease", "keepalive", "beef", "--once").Want(t, 0, "beef lasts 60 s\n", "")
	f.run(t, "lease", "show", "beef").Want(t, command.StatusRefused, "", "does not exist, or has expired")
	f.run(t, "lease", "revoke", "beef").Want(t, command.StatusRefused, "", "requested lease not found")
	f.run(t, "lease", "grant", "5", "-o", "json").Want(t, 0, `{"id":"beef","ttl_seconds":5}`+"\n", "")
	f.run(t, "lease", "revoke", "beef").Want(t, 0, "", "revoked beef")
	f.run(t, "lease", "keepalive", "beef").Want(t, command.StatusRefused, "", "requested lease not found")
}

// Ensure that what etcd's API can say works with a server that has no other.
func TestRun_memberOnEtcd(t *testing.T) {
	f := startFake(t)
	const head = "ID  NAME  ROLE     STATE        LAG  LAST-CONTACT  PEER-URLS              CLIENT-URLS\n"
	m1 := "a1  m1    voter    -            -    -             http://127.0.0.1:2380  http://" + f.address + "\n"
	f.run(t, "member", "add", "http://b:2380", "--learner", "--yes").Want(t, 0,
		head+m1+"a2  -     learner  not started  -    -             http://b:2380          -\n",
		"added a2; start it with --initial-cluster-state existing and --initial-cluster "+
			"m1=http://127.0.0.1:2380,NAME=http://b:2380")
	f.run(t, "member", "update", "a2", "http://c:2380", "-y").Want(t, 0,
		head+m1+"a2  -     learner  not started  -    -             http://c:2380          -\n", "")
	f.run(t, "member", "promote", "m1", "-y").Want(t, command.StatusRefused, "", "can only promote a learner member")
	f.run(t, "member", "remove", "m9", "-y").Want(t, command.StatusRefused, "", `no member is called "m9"; there are a1 (m1), a2 ()`)
	f.run(t, "member", "remove", "A2", "-y").Want(t, 0,
		"ID  NAME  ROLE   STATE  LAG  LAST-CONTACT  PEER-URLS              CLIENT-URLS\n"+
			"a1  m1    voter  -      -    -             http://127.0.0.1:2380  http://"+f.address+"\n", "")
	f.run(t, "member", "list", "-o", "json").Want(t, 0, `{"cluster_id":"1","members":[{"id":"161","name":"m1",`+
		`"peer_urls":["http://127.0.0.1:2380"],"client_urls":["http://`+f.address+`"],"role":"ROLE_VOTER","started":true}]}`+"\n", "")
	const none = "this server has no membership API of its own"
	f.run(t, "member", "demote", "m1", "-y").Want(t, command.StatusRefused, "", none)
	f.run(t, "member", "remove", "m1", "m2", "-y").Want(t, command.StatusRefused, "", none)
	f.run(t, "member", "remove", "m1", "--dry-run").Want(t, command.StatusRefused, "", none)
	f.run(t, "member", "watch").Want(t, command.StatusRefused, "", none)
}

// Ensure that status shows members that are down beside those that are up, and fails for scripts.
func TestRun_status(t *testing.T) {
	f := startFake(t)
	got := f.run(t, "status")
	if got.Status != 0 || !strings.Contains(got.Out, "leader  7     12     11       1    1         2.0 KiB  3.7.1") {
		t.Errorf("a leader alone: got %d\n%s", got.Status, got.Out)
	}
	f.troubles = []string{"memberID:161  alarm:NOSPACE", "disk of m1 \x1b[2Jnearly full"}
	got = f.run(t, "status")
	if got.Status != command.StatusRefused || !strings.Contains(got.Out, "m1 reports: alarm NOSPACE of m1 (a1): ") ||
		!strings.Contains(got.Out, "`quorate doctor` names the command") || strings.Contains(got.Out, "compact REVISION") ||
		!strings.Contains(got.Out, "m1 reports: disk of m1 [2Jnearly full\n") {
		t.Errorf("a leader with alarms: got %d\n%s", got.Status, got.Out)
	}
	f.full, f.events = 1, append(f.events, &mvccpb.Event{Kv: &mvccpb.KeyValue{}})
	f.run(t, "put", "a", "1").Want(t, command.StatusRefused, "", "database space exceeded\nm1 reports: alarm NOSPACE of m1 "+
		"(a1)")
	f.troubles = nil
	f.members = append(f.members,
		&pb.Member{ID: 2, Name: "m2", ClientURLs: []string{"http://" + testnet.Address(t)}}, &pb.Member{ID: 3})
	got = f.run(t, "status", "--timeout=500ms")
	if got.Status != command.StatusRefused || !strings.Contains(got.Out, "m2 is down: connection refused") ||
		!strings.Contains(got.Out, "3 is down: it was never started") {
		t.Errorf("two down: got %d\n%s", got.Status, got.Out)
	}
	f.members, f.leader = f.members[:1], 0
	got = f.run(t, "status")
	if got.Status != command.StatusRefused || !strings.Contains(got.Out, "the cluster has no leader") {
		t.Errorf("no leader: got %d\n%s", got.Status, got.Out)
	}
	got = f.run(t, "status", "-o", "json")
	if want := `[{"name":"m1","endpoint":"` + f.address + `","id":"a1","role":"no leader","term":7,`; got.Status !=
		command.StatusRefused || !strings.HasPrefix(got.Out, want) {
		t.Errorf("as JSON: got %d %s, want %s…", got.Status, got.Out, want)
	}
}

// Ensure that a second cluster, a second leader or a member without one, behind the endpoints is no success.
func TestRun_status_divided(t *testing.T) {
	f, other := startFake(t), startFake(t)
	other.id, other.cluster = 0xa2, 2
	other.leader = other.id
	says := func(want string, args ...string) {
		t.Helper()
		got := f.run(t, append([]string{"status"}, args...)...)
		if got.Status != command.StatusRefused || !strings.Contains(got.Err, want) || !strings.Contains(got.Out, "leader") {
			t.Errorf("%v: got %d, output %s, errors %s, want %q", args, got.Status, got.Out, got.Err, want)
		}
	}
	says("TWO CLUSTERS: ? answers at "+
		"", "--endpoints="+f.address+","+other.address, "-ojson") // whichever answers first tells who is listed
	f.members = append(f.members, &pb.Member{ID: other.id, Name: "m2", ClientURLs: []string{"http://" + other.address}})
	says("TWO CLUSTERS: m2 answers at " + other.address + " for cluster 2, the members listed here are of cluster 1")
	other.cluster = 1
	says("TWO LEADERS: m2 at " + other.address + " names a2 as the leader in term 7, and m1 at " + f.address + " names a1: " +
		"two clusters")
	other.term, other.cutOff = 6, true
	says("TWO LEADERS: m2 at " + other.address + " says that it leads in term 6, and a1 leads in term 7. If the former was " +
		"cut off")
	other.members[0].ID = other.id // as founders that began anew: no member in common
	f.members = f.members[:1]
	both := "--endpoints=" + f.address + "," + other.address
	says(f.address+" of one with leader a1 in term 7: two clusters have one id", both)
	other.members[0].ID, other.cutOff = fakeID, false // it has a quorum in a term that is over
	says(f.address+" of one with leader a1 in term 7: two clusters have one id", both)
	other.id, other.members[0].ID = 0xa3, 0xa2 // a follower of the other cluster
	says(" at "+other.address+" is of one with leader a2 in term 6, and ", both)
	other.term = 7
	says(" at "+other.address+" is of one with leader a2 in term 7, and ", both)
	other.leader = f.leader // it knows the same leader, as one whom the other does not list yet
	if got := f.run(t, "status", both); got.Status != 0 {
		t.Errorf("a member that is not listed yet: got %d, %s", got.Status, got.Err)
	}
	other.leader = 0xa2
	other.id, other.members[0].ID = 0xa2, fakeID
	f.members = append(f.members, &pb.Member{ID: other.id, Name: "m2", ClientURLs: []string{"http://" + other.address}})
	other.leader, other.term = 0, 7
	says("") // fails
	if got := f.run(t, "status"); !strings.Contains(got.Out, "m2 answers clients and knows no leader") ||
		!strings.Contains(got.Out, "stop only m2") || !strings.Contains(got.Out, "member list --endpoints "+f.address+"`") {
		t.Errorf("a member that is cut off: got %d\n%s", got.Status, got.Out)
	}
	f.members = f.members[:1]
	port := f.address[strings.LastIndex(f.address, ":")+1:]
	if got := f.run(t, "status", "--endpoints="+f.address+",localhost:"+port); got.Status != 0 || got.Err != "" {
		t.Errorf("a second name of a member: got %d, %s", got.Status, got.Err)
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
	if !strings.Contains(got.Out, "m2 is down: member failed: it has [2Jlost its disk\n") {
		t.Errorf("got %d\n%s", got.Status, got.Out)
	}
	f.run(t, "get", "a", "--timeout=50ms", "--endpoints="+address).Want(t, command.StatusUnreachable, "",
		"no answer from "+address+" within 50ms: "+address+": member failed: it has [2Jlost its disk")
}

// Ensure that what is wrong in the same way at several endpoints is said once.
func TestRun_sameMistake(t *testing.T) {
	var servers [2]*httptest.Server
	var addresses [2]string
	for i := range servers {
		servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "[-]member failed: it has lost its disk", http.StatusServiceUnavailable)
		}))
		defer servers[i].Close()
		addresses[i] = strings.TrimPrefix(servers[i].URL, "http://")
	}
	got := ctltest.RunAt(t, strings.Join(addresses[:], ","), "get", "a", "--timeout=50ms")
	got.Want(t, command.StatusUnreachable, "", addresses[0]+", "+addresses[1]+": member failed: it has lost its disk")
	if n := strings.Count(got.Err, "lost its disk"); n != 1 {
		t.Errorf("it is said %d times: %s", n, got.Err)
	}
}

// Ensure that a member which serves and has no leader is not told as one that does not answer: its /readyz does not before its
// read of the quorum has failed.
func TestRun_noQuorum(t *testing.T) {
	ended := make(chan struct{})
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !r.URL.Query().Has("exclude") {
			<-ended
		}
	}))
	defer member.Close()
	defer close(ended)
	address := strings.TrimPrefix(member.URL, "http://")
	ctltest.RunAt(t, address, "get", "a", "--timeout=50ms").Want(t, command.StatusUnreachable, "",
		"no answer from "+address+" within 50ms: it may have no leader; see `quorate status`")
}

// Ensure that a cluster without a leader whose members all answer is shown with the peer URL at which no process listens.
func TestRun_status_deafPeer(t *testing.T) {
	f := startFake(t)
	deaf := "http://" + testnet.Address(t)
	f.members[0].PeerURLs, f.leader = []string{deaf}, 0
	got := f.run(t, "status")
	if want := "nobody listens, as seen from here, at peer URL " + deaf + " of m1 (connection refused)"; got.Status !=
		command.StatusRefused || !strings.Contains(got.Out, want) {
		t.Errorf("got %d\n%s\nwant %q", got.Status, got.Out, want)
	}
	f.members[0].PeerURLs = []string{"http://" + f.address}
	other := startFake(t)
	other.id, other.leader = 3, 0
	f.members = append(f.members, &pb.Member{ID: 2, Name: "m2", PeerURLs: []string{deaf}, ClientURLs: []string{deaf}},
		&pb.Member{ID: 3, Name: "m3", PeerURLs: []string{"http://" + other.address}, ClientURLs: []string{"http://" + other.address}})
	if got := f.run(t, "status"); !strings.Contains(got.Out, deaf+" of m2 (connection refused). Start m2 with its usual flags or, if "+
		"it moved") || strings.Contains(got.Out, "orrect it") {
		t.Errorf("a member that does not run: got %d\n%s", got.Status, got.Out)
	}
	f.members = f.members[:1]
	if got := f.run(t, "status"); !strings.Contains(got.Out, "the members may not reach each other") {
		t.Errorf("got %d\n%s", got.Status, got.Out)
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
			t.Parallel() // each waits for a process to listen
			got := ctltest.Run(t, t.Context(), command.Streams{}, "", append(args, "--endpoints="+address)...)
			got.Want(t, command.StatusUnreachable, "", "cannot reach "+address+": connection refused\nIs it running? Start a "+
				"cluster with `quorate dev`")
		})
	}
}

// Ensure that a cluster that listens but does not answer is told apart from one that is not there.
func TestRun_noAnswer(t *testing.T) {
	f := startFake(t)
	f.mute = true
	f.run(t, "get", "a", "--timeout=1m").Want(t, command.StatusUnreachable, "",
		"no answer from "+f.address+" within 1m0s: it may have no leader")
}

func TestRun_snapshot(t *testing.T) {
	f := startFake(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	f.run(t, "snapshot", "save", path).Want(t, 0, "saved "+path+", 78.2 KiB\n", "")
	if info, err := os.Stat(path); err != nil || info.Size() != 80_032 {
		t.Errorf("got %v, %v; want 80032 bytes", info, err)
	}
	f.damaged = true
	f.run(t, "snapshot", "save", filepath.Join(dir, "t.db")).Want(t, command.StatusRefused, "",
		"save the snapshot: the checksum at its end does not match")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("a damaged transfer left files behind: %v", entries)
	}
	f.run(t, "snapshot", "save", path, "--endpoints=a:1,b:1").Want(t, command.StatusUsage, "", "a snapshot is of one member")
}

func TestRun_config(t *testing.T) {
	t.Chdir(t.TempDir())
	got := ctltest.Run(t, t.Context(), command.Streams{Environ: []string{"ETCD_NAME=m9", "ETCD_WHAT=1"}}, "", "config", "print", "--max-learners=3")
	if got.Status != 0 || !strings.Contains(got.Out, "name: m9\n") || !strings.Contains(got.Out, "max-learners: 3\n") ||
		got.Err != "warning: unknown environment variable ETCD_WHAT is ignored\n" {
		t.Errorf("got %+v", got)
	}
	ctltest.Run(t, t.Context(), command.Streams{}, "", "config", "print", "--cert-file=x").Want(t, command.StatusRefused, "",
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
