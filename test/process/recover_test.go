package process_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// startTrio starts three members that found a cluster.
func startTrio(t *testing.T) *elastic {
	t.Helper()
	return startVoters(t, 3)
}

// startVoters starts members that found a cluster, all with the same flags.
func startVoters(t *testing.T, size int, flags ...string) *elastic {
	t.Helper()
	e := planVoters(t, size, flags...)
	e.found()
	return e
}

// planVoters does all but starting them.
func planVoters(t *testing.T, size int, flags ...string) *elastic {
	t.Helper()
	e := &elastic{cluster: &cluster{t: t, binary: buildBinary(t), flags: flags}, dir: t.TempDir()}
	t.Cleanup(e.end)
	for i := range size {
		e.nodes = append(e.nodes, e.node(fmt.Sprintf("m%d", i+1)))
	}
	return e
}

func (e *elastic) found() {
	e.t.Helper()
	for _, n := range e.nodes {
		e.launch(n, "new")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.client = e.quiet(e.nodes...)
}

// fill writes a hundred keys and some more, and returns once the survivor has applied all that was acknowledged.
func (e *elastic) fill(survivor *node) map[string]string {
	e.t.Helper()
	stop := e.load(4)
	e.awaitWrites(100)
	acked := stop()
	e.checkKeys(survivor, acked)
	if len(acked) < 20 {
		e.t.Fatalf("only %d writes were acknowledged", len(acked))
	}
	return acked
}

// quorate runs a command to its end, and wants its status and words in what it says.
func (e *elastic) quorate(status int, args []string, words ...string) string {
	e.t.Helper()
	got, out := e.ran(args)
	if got != status {
		e.t.Fatalf("quorate %s: status %d, want %d:\n%s", strings.Join(args, " "), got, status, out)
	}
	for _, want := range words {
		if !strings.Contains(out, want) {
			e.t.Errorf("quorate %s: no %q in:\n%s", strings.Join(args, " "), want, out)
		}
	}
	return out
}

// ran runs a command to its end. A status below zero means that it did not end.
func (c *cluster) ran(args []string) (status int, said string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.binary, args...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		status = exit.ExitCode()
	} else if err != nil {
		status = -1
	}
	return status, string(out)
}

// awaitSaid repeats a command until it ends with a status and says words: members tell each other of some states within a second.
func (c *cluster) awaitSaid(status int, args []string, words ...string) {
	c.t.Helper()
	got, said := 0, ""
	defer func() {
		if c.t.Failed() {
			c.t.Logf("quorate %s: status %d:\n%s", strings.Join(args, " "), got, said)
		}
	}()
	until(c.t, fmt.Sprintf("quorate %s ends with %d, and says %q", strings.Join(args, " "), status, words), func(context.Context) bool {
		got, said = c.ran(args)
		return got == status && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(said, word) })
	})
}

// fingerprint sums up what is in a directory, but for files that only locks open.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		// Beside the data it is noted that --force-new-cluster was used, and what an operator told of addresses.
		if err != nil || d.IsDir() || d.Name() == "LOCK" || d.Name() == "forced" || d.Name() == "addresses" {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d %x\n", path, len(content), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// waitRemoved wants a member to stop by itself, with the status and the word for one that was removed.
func (e *elastic) waitRemoved(n *node) {
	e.t.Helper()
	select {
	case <-n.exited:
	case <-time.After(patience):
		e.t.Fatalf("%s was removed and goes on", n.name)
	}
	if got := n.cmd.ProcessState.ExitCode(); got != 4 {
		e.t.Errorf("%s was removed and ended with status %d, want 4", n.name, got)
	}
	if end := tail(n.log, 1000); !strings.Contains(end, "permanently removed from the cluster") {
		e.t.Errorf("the last words of %s: %s", n.name, end)
	}
}

func (e *elastic) term(n *node) uint64 {
	e.t.Helper()
	return e.status(n).RaftTerm
}

// TestRecover loses two of three members for ever, recovers the third, and lets the lost ones come back.
func TestRecover(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, two, three := e.nodes[0], e.nodes[1], e.nodes[2]
	acked := e.fill(one)
	e.quorate(1, []string{"recover", "--data-dir", one.dir, "--yes"}, "is in use by another process")

	one.kill()
	three.kill()
	whole := fingerprint(t, filepath.Join(one.dir, "member"))
	recover := func(more ...string) []string { return append([]string{"recover", "--data-dir", one.dir}, more...) }
	e.quorate(1, recover("--yes"), "m2 answers at http://"+two.peer, "that is a quorum", "`quorate member replace`")
	e.quorate(0, recover("--dry-run"), "Removed for ever: ", "nothing was changed.\nWithout it: ", "that is a quorum")
	two.kill()
	e.quorate(0, recover("--dry-run"), "m1 is the only voter", "Removed for ever: ", "m2 (", "m3 (", "m3 does not answer",
		"voters m", "nothing was changed", "m2, m3 may serve without this member")
	// They refuse connections, as members do that have moved: only the operator knows, and is told what to type.
	e.quorate(1, recover("--yes"), "m2, m3 may serve without this member, at addresses that it does not know", "Nothing was "+
		"changed",
		"quorate recover --data-dir "+one.dir+" --members-are-lost m2,m3\n")
	e.quorate(1, recover("--yes", "--members-are-lost", "m3"), "m2 may serve without this member", "--members-are-lost m3,m2\n")
	e.quorate(1, recover("--members-are-lost", "m2,m3"), "repeat this with --yes")
	e.quorate(1, recover("--yes", "--compare", two.dir), "are a quorum: start them with their usual flags")
	e.quorate(1, recover("--yes", "--compare", one.dir), "is the directory of this member itself")
	e.quorate(1, recover("--yes", "--keep", "m2"), "only learners may stay")
	e.quorate(1, recover("--yes", "--members-are-lost", "m9"), `no member is called "m9": the members are m`)
	e.quorate(1, []string{"recover", "--data-dir", e.dir, "--yes"}, "holds no member's data")
	e.quorate(1, recover("--yes", "--members-are-lost", "m2,m3", "--log-ends-at", "1:2"), "and not at entry 2 of term 1 as "+
		"--log-ends-at says", "Nothing was changed")
	if fingerprint(t, filepath.Join(one.dir, "member")) != whole {
		t.Error("a recovery that was refused, or only tried, has changed something")
	}
	e.quorate(0, recover("--yes", "--compare", two.dir, "--members-are-lost", "m2,m3", "--force-behind"),
		"Survivors, the most advanced first", "m2 is lost, as you say", "m1 is recovered")
	e.quorate(0, recover("--yes"), "already the only voter", "Nothing was changed")

	e.nodes = []*node{one}
	e.use()
	e.launch(one, "new")
	e.waitReady(one)
	e.checkKeys(one, acked)
	until(t, "the recovered member tells its epoch", func(ctx context.Context) bool {
		observed, err := quoratepb.NewDoctorClient(e.client.ActiveConnection()).Observe(ctx, &quoratepb.ObserveRequest{})
		return err == nil && observed.GetCore().GetEpoch() == 1
	})
	for _, name := range []string{"m4", "m5"} {
		n := e.node(name)
		added := e.add(n.peer, false)
		e.nodes = append(e.nodes, n)
		e.launch(n, "existing")
		e.waitReady(n)
		e.waitVoter(added)
		e.use()
		e.checkKeys(n, acked)
	}
	e.comeBack(two, three)
}

// comeBack starts former members again, which are a majority of what they know. They meet the recovered one before they elect
// a leader: they serve nothing, say so, and disturb no other member.
func (e *elastic) comeBack(former ...*node) {
	e.t.Helper()
	leader := e.leader()
	before := e.term(leader)
	stop := e.load(2)
	now := e.nodes
	for _, n := range former {
		e.launch(n, "new")
	}
	for _, n := range former {
		e.waitSuperseded(n)
	}
	until(e.t, "the recovered member raises an alarm", func(context.Context) bool {
		log := tail(now[0].log, 1<<20)
		return strings.Contains(log, former[0].name+" (") && strings.Contains(log, "is of the time before this cluster was")
	})
	acked := stop()
	for _, n := range now {
		e.checkKeys(n, acked)
	}
	if after := e.term(leader); after != before {
		e.t.Errorf("term %d before the dropped ones came back, %d after", before, after)
	}
	for _, n := range former {
		if log, err := os.Stat(n.log); err != nil || log.Size() > 1<<20 {
			e.t.Errorf("what %s says while it serves nothing fills the disk: %v, %v", n.name, log, err)
		}
	}
	for _, n := range former {
		n.kill()
		if _, err := os.Stat(filepath.Join(n.dir, "member", "boots")); err != nil {
			e.t.Errorf("%s has not kept its data: %v", n.name, err)
		}
	}
	e.gone = append(e.gone, former...)
}

// waitSuperseded wants a member to run and to serve nothing, neither reads nor writes nor as ready, and to say why.
func (e *elastic) waitSuperseded(n *node) {
	e.t.Helper()
	const says = "the cluster was recovered without this member"
	until(e.t, n.name+" says why it serves nothing", func(context.Context) bool {
		return strings.Contains(tail(n.log, 1<<20), says)
	})
	client := e.quiet(n)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := pb.NewKVClient(client.ActiveConnection()).Put(ctx, &pb.PutRequest{Key: []byte("load/never")})
	if err == nil || !strings.Contains(err.Error(), says) {
		e.t.Errorf("%s: a write: got %v, want to hear why it is refused", n.name, err)
	}
	_, err = pb.NewKVClient(client.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: []byte("load/"), Serializable: true})
	if err == nil || !strings.Contains(err.Error(), says) {
		e.t.Errorf("%s: a read: got %v, want to hear why it is refused", n.name, err)
	}
	answer, err := http.Get(n.client + "/readyz")
	if err != nil {
		e.t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), says) {
		e.t.Errorf("%s: readyz: %d %s, %v", n.name, answer.StatusCode, body, err)
	}
	select {
	case <-n.exited:
		e.t.Errorf("%s has stopped", n.name)
	default:
	}
}

// TestRecover_apart recovers two survivors of one cluster, each alone. They meet, and both say who the other is.
func TestRecover_apart(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	e.fill(e.nodes[0])
	for _, n := range e.nodes {
		n.kill()
	}
	rivals := e.nodes[:2]
	for i, n := range rivals {
		lost := rivals[1-i].name + ",m3"
		e.quorate(0, []string{"recover", "--data-dir", n.dir, "--yes", "--members-are-lost", lost}, "goes from epoch 0 to "+
			"epoch 1-")
	}
	e.gone, e.nodes = e.nodes[2:], rivals
	for _, n := range rivals {
		e.launch(n, "new")
	}
	for i, n := range rivals {
		other := rivals[1-i]
		id := consensus.MemberID(e.status(other).Header.MemberId)
		until(t, n.name+" names the other", func(context.Context) bool {
			log := tail(n.log, 1<<20)
			return strings.Contains(log, fmt.Sprintf("%s (%v) of "+
				"epoch", other.name, id)) && strings.Contains(log, "http://"+other.peer) &&
				strings.Contains(log, "was recovered apart from this member")
		})
		until(t, n.name+" shows an alarm in its status", func(context.Context) bool {
			return strings.Contains(strings.Join(e.status(n).Errors, " "), "was recovered apart")
		})
		e.awaitSaid(0, []string{"member", "list", "--timeout=20s", "--endpoints=" + n.client}, "alarm: ", "was recovered apart")
	}
}

// TestRecover_learner keeps a learner whose data shows that it may stay.
func TestRecover_learner(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one := e.nodes[0]
	learner := e.node("l1")
	e.add(learner.peer, true)
	founders := e.nodes
	e.nodes = append(e.nodes, learner)
	e.launch(learner, "existing")
	until(t, "the learner has started", func(context.Context) bool {
		return strings.Contains(tail(learner.log, 1<<20), "ready to serve client requests")
	})
	acked := e.fill(one)
	for _, n := range e.nodes {
		n.kill()
	}
	recover := []string{"recover", "--data-dir", one.dir, "--yes", "--members-are-lost", "m2,m3", "--keep", "l1"}
	e.quorate(1, recover, "give its data directory")
	e.quorate(0, append(recover, "--compare", learner.dir, "--force-behind"), "l1 may stay", "m1 is recovered")
	e.gone, e.nodes = founders[1:], []*node{one, learner}
	e.use()
	e.launch(one, "new")
	e.launch(learner, "existing")
	e.waitReady(one)
	e.checkKeys(one, acked)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := e.client.Put(ctx, "load/after", "recovery"); err != nil {
		t.Fatal(err)
	}
	client := e.quiet(learner)
	defer client.Close()
	until(t, "the learner has what was written after", func(ctx context.Context) bool {
		got, err := client.Get(ctx, "load/after", clientv3.WithSerializable())
		return err == nil && len(got.Kvs) == 1
	})
}

// TestRecover_learnerSurvives recovers a learner, which has all that a voter has that is left: it leads alone.
func TestRecover_learnerSurvives(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, learner := e.nodes[0], e.node("l1")
	e.add(learner.peer, true)
	e.nodes = append(e.nodes, learner)
	e.launch(learner, "existing")
	acked := e.fill(one)
	client := e.quiet(learner)
	defer client.Close()
	until(t, "the learner has what was written", func(ctx context.Context) bool {
		got, err := client.Get(ctx, "load/", clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
		return err == nil && got.Count >= int64(len(acked))
	})
	for _, n := range e.nodes {
		n.kill()
	}
	e.quorate(0, []string{"recover", "--data-dir", learner.dir, "--yes", "--members-are-lost", "m1,m2,m3", "--compare", one.dir,
		"--force-behind"}, " is recovered. Start it with its usual flags") // maybe by its id: the name is published later
	e.gone, e.nodes = e.nodes[:3], []*node{learner}
	e.use()
	e.launch(learner, "existing")
	e.waitReady(learner)
	e.checkKeys(learner, acked)
}

// forced are the flags of n's unit, in which --force-new-cluster stands.
func forced(n *node) []string {
	return []string{"--force-new-cluster", "--name=" + n.name, "--data-dir=" + n.dir, "--listen-client-urls=" + n.client,
		"--advertise-client-urls=" + n.client, "--listen-peer-urls=http://" + n.peer,
		"--initial-advertise-peer-urls=http://" + n.peer, "--heartbeat-interval=50", "--election-timeout=500"}
}

// TestForceNewCluster is etcd's flag: the same recovery, at the start of the server.
func TestForceNewCluster(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one := e.nodes[0]
	empty := e.node("empty")
	e.quorate(1, forced(empty), "keeps the contents of a member, but --data-dir "+empty.dir+" holds none")
	acked := e.fill(one)
	for _, n := range e.nodes {
		n.kill()
	}
	former := e.nodes[1:]
	e.nodes = []*node{one}
	e.use()
	e.run(one, forced(one)...)
	e.waitReady(one)
	e.checkKeys(one, acked)
	if log := tail(one.log, 1<<20); !strings.Contains(log, "forced a new cluster") {
		t.Error("the diary does not tell of it")
	}
	one.kill()
	e.run(one, forced(one)...)
	e.waitReady(one)
	if log := tail(one.log, 1<<20); !strings.Contains(log, "was used with this data directory before, and does nothing") {
		t.Error("a second start does not say that the flag has no effect")
	}
	e.checkKeys(one, acked)
	e.comeBack(former...)
}

// TestForceNewCluster_forgotten leaves the flag in a unit. The cluster is whole again and loses power; the member with the flag
// boots first, when nothing listens at the others yet, and lacks what they have acknowledged.
func TestForceNewCluster_forgotten(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one := e.nodes[0]
	for _, n := range e.nodes {
		n.kill()
	}
	e.gone, e.nodes = e.nodes[1:], []*node{one}
	e.use()
	e.run(one, forced(one)...)
	e.waitReady(one)
	others := []*node{e.grow("m4"), e.grow("m5")}
	one.kill()
	e.write(others[0], "acknowledged without m1")
	for _, n := range others {
		n.kill()
	}
	e.run(one, forced(one)...)
	until(t, "m1 says that the flag does nothing", func(context.Context) bool {
		return strings.Contains(tail(one.log, 4000), "was used with this data directory before, and does nothing")
	})
	for _, n := range others {
		e.launch(n, "existing")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
		e.checkKeys(n, map[string]string{"load/acked": "acknowledged without m1"})
	}
}

// TestForceNewCluster_refused leaves the flag in a unit after it was refused, because others served. They lose power, and the unit
// starts the member again.
func TestForceNewCluster_refused(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	one, others := e.nodes[0], e.nodes[1:]
	one.kill()
	e.write(others[0], "acknowledged without m1")
	e.quorate(1, forced(one), "that is a quorum", "nothing was changed", "will not be obeyed again")
	for _, n := range others {
		n.kill()
	}
	e.run(one, forced(one)...)
	until(t, "m1 says that the flag does nothing", func(context.Context) bool {
		return strings.Contains(tail(one.log, 4000), "was used with this data directory before, and does nothing")
	})
	for _, n := range others {
		e.launch(n, "new")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
		e.checkKeys(n, map[string]string{"load/acked": "acknowledged without m1"})
	}
}

// write writes one key through n.
func (e *elastic) write(n *node, value string) {
	e.t.Helper()
	client := e.quiet(n)
	defer client.Close()
	until(e.t, "a write at "+n.name, func(ctx context.Context) bool {
		_, err := client.Put(ctx, "load/acked", value)
		return err == nil
	})
}
