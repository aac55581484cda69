package process_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/testnet"
)

// faultPause is how long a job is given before the next fault: at any of its steps.
func faultPause(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	pause := rand.N(most)
	t.Logf("the fault comes after %v", pause)
	return pause
}

// TestJobs_leaderKilled replaces a member and kills the leader while the newcomer is waited for, and the next one at some
// moment after it was started. The member that leads then ends the job, and the command that began it sees that.
func TestJobs_leaderKilled(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	stop := e.witness(2, e.nodes...)
	first := e.leader()
	old, heir := e.others(first)[0], e.node("m4")
	command := e.begin(e.member("replace", old.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes")...)
	begun := e.job("running", "start")
	led := e.described().Leader
	first.kill()
	until(t, "another leader", func(ctx context.Context) bool { return e.described().Leader != led })
	e.launch(first, "existing")
	e.waitReady(first)
	if again := e.job("running", "start"); again.Id != begun.Id || !cmp.Equal(again.Newcomers, begun.Newcomers) {
		t.Errorf("the next leader has job %v, the last one had %v", again, begun)
	}

	e.enter(heir, e.nodes...)
	second := e.leader()
	last(faultPause(t, 600*time.Millisecond))
	second.kill()
	e.finish(command, 0, "done in ")
	e.launch(second, "existing")
	e.replaced(old, begun)
	stop()
}

// replaced waits until all is as it should be after a job that replaces a member.
func (e *elastic) replaced(old *node, job *quoratepb.Job) {
	e.t.Helper()
	e.leave(old)
	e.waitRemoved(old)
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	e.checkVoters()
	if ended := e.job("done"); ended.Id != job.Id {
		e.t.Errorf("job %x ended, job %x began", ended.Id, job.Id)
	}
}

// TestJobs_allKilled kills every process in the middle of a job, more than once, and the newcomer with the last time.
func TestJobs_allKilled(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	acked := e.fill(e.nodes[0])
	old, heir := e.nodes[0], e.node("m4")
	e.quorate(0, e.member("replace", old.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes", "--detach"), "job ")
	begun := e.job("running", "start")
	restart := func(start func(n *node)) {
		for _, n := range e.nodes {
			n.kill()
		}
		for _, n := range e.nodes {
			start(n)
		}
	}
	again := func(n *node) {
		if n == heir {
			e.run(n, e.joining(n, "http://"+e.nodes[1].peer)...)
			return
		}
		e.launch(n, "existing")
	}
	restart(again)
	e.job("running", "start")
	e.enter(heir, e.nodes...)
	last(faultPause(t, time.Second))
	restart(again)
	e.leave(old)
	e.waitRemoved(old)
	for _, n := range e.nodes {
		e.waitReady(n)
		e.checkKeys(n, acked)
	}
	if ended := e.job("done"); ended.Id != begun.Id {
		t.Errorf("job %x ended, job %x began", ended.Id, begun.Id)
	}
	e.checkVoters()
}

// detached gives a command that begins a job and does not wait for it, and returns the id that it tells.
func (e *elastic) detached(args []string) string {
	e.t.Helper()
	const before = "`quorate member jobs watch "
	said := e.quorate(0, append(args[:len(args):len(args)], "--detach"), before)
	id, _, _ := strings.Cut(said[strings.LastIndex(said, before)+len(before):], "`")
	return id
}

// TestJobs_repeated gives a command again while its job is under way, and after it.
func TestJobs_repeated(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	heir := e.node("m4")
	add := e.member("change", "--add=m4=http://"+heir.peer, "--yes")
	first := e.detached(add)
	before := e.job("running", "start")
	if again := e.detached(add); again != first || again != hex(before.Id) {
		t.Errorf("the same command began job %s, and then %s; the cluster knows %x", first, again, before.Id)
	}
	command := e.begin(add...)
	e.waitLog(command, "start")
	e.enter(heir, e.nodes...)
	e.finish(command, 0, "done in ")
	e.checkVoters()
	settled := e.described().Config
	e.quorate(0, add, "nothing to do")
	if after := e.job("done"); after.Id != before.Id {
		t.Errorf("job %x ended, job %x began", after.Id, before.Id)
	}
	if now := e.described().Config; !cmp.Equal(now, settled, protocmp.Transform()) {
		t.Errorf("the configuration was %v, and is %v after nothing was to be done", settled, now)
	}
}

// TestJobs_cancelled cancels a job when one of its two newcomers has come: it goes again, and the cluster is as before.
func TestJobs_cancelled(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	before := e.described()
	come, missing := e.node("m4"), e.node("m5")
	command := e.begin(e.member("change", "--add=m4=http://"+come.peer, "--add=m5=http://"+missing.peer,
		"--remove="+e.nodes[0].name, "--yes")...)
	job := e.job("running", "start")
	e.enter(come, e.nodes...)
	e.waitLog(come, "ready to serve client requests")
	e.leave(come)
	if during := e.described(); len(during.Members) != 5 || during.Strength.Voters != 3 {
		t.Errorf("while newcomers are waited for, got %v; want three voters and two learners", during)
	}
	e.quorate(0, e.member("jobs", "cancel", hex(job.Id)), "cancelled")
	e.finish(command, 1, "cancelled")
	e.checkVoters()
	e.job("cancelled")
	after := e.described()
	if len(after.Members) != len(before.Members) || !cmp.Equal(after.Strength, before.Strength, protocmp.Transform()) {
		t.Errorf("before: %v; after: %v", before, after)
	}
	for i, m := range after.Members {
		if m.Id != before.Members[i].Id || m.Role != before.Members[i].Role {
			t.Errorf("member %d was %v, and is %v", i, before.Members[i], m)
		}
	}
	e.waitRemoved(come)
	e.fill(e.nodes[0])
}

// TestJobs_queued asks for three jobs at once that only add members: the second waits for the first, and the third is
// cancelled while it waits.
func TestJobs_queued(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	m4, m5 := e.node("m4"), e.node("m5")
	one := e.begin(e.member("change", "--add=m4=http://"+m4.peer, "--yes")...)
	e.job("running", "start")
	two := e.begin(e.member("change", "--add=m5=http://"+m5.peer, "--yes")...)
	e.waitLog(two, "queued behind 1 job")
	three := e.detached(e.member("change", "--add=m6=http://"+testnet.Address(t), "--yes"))
	e.jobs("three jobs, of which two wait", 3, func(jobs []*quoratepb.Job) bool {
		return jobs[0].State == "running" && jobs[1].State == "queued" && jobs[2].State == "queued" && hex(jobs[2].Id) == three
	})
	e.quorate(0, e.member("jobs", "cancel", three), "cancelled")
	if during := e.described().Members; len(during) != 4 {
		t.Errorf("while the first job waits, got the members %v, want the three and its newcomer", during)
	}

	e.enter(m4, e.nodes...)
	e.finish(one, 0, "done in ")
	e.waitLog(two, "start")
	e.enter(m5, e.nodes...)
	e.finish(two, 0, "done in ")
	e.checkVoters()
	jobs := e.jobs("two jobs done and one cancelled", 3, func(jobs []*quoratepb.Job) bool {
		return jobs[0].State == "done" && jobs[1].State == "done" && jobs[2].State == "cancelled"
	})
	if jobs[1].StartedMs < jobs[0].EndedMs || jobs[2].StartedMs != 0 {
		t.Errorf("the second began before the end of the first, or the third began: %v", jobs)
	}
}

// TestJobs_decided replaces a member of a cluster whose members are far from each other. A watcher sees that the change is decided
// before it is settled, and it stays so: the leader is killed in that moment, and the next one brings the change to its end.
func TestJobs_decided(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 3, "--peer-delay=100ms")
	leader := e.leader()
	old, heir := e.others(leader)[0], e.node("m4")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	native := quoratepb.NewMembershipClient(e.quiet(leader).ActiveConnection())
	events, err := native.Watch(ctx, &quoratepb.WatchRequest{IntervalMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	command := e.begin(e.member("replace", old.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes")...)
	begun := e.job("running", "start")
	e.enter(heir, e.nodes...)
	var told []string
	for len(told) == 0 || told[len(told)-1] != "decided" {
		event, err := events.Recv()
		if err != nil {
			t.Fatalf("after %v: %v", told, err)
		}
		for _, job := range event.Jobs {
			if job.Id == begun.Id && (len(told) == 0 || told[len(told)-1] != job.Phase) {
				told = append(told, job.Phase)
			}
			if job.Id == begun.Id && job.State != "running" && job.State != "queued" {
				t.Fatalf("the job is %s, and was told to be at %v", job.State, told)
			}
		}
	}
	if at := slices.Index(told, "swap"); at < 0 || at != len(told)-2 {
		t.Errorf("the job was told to be at %v", told)
	}
	leader.kill()
	e.finish(command, 0, "done in ")
	e.launch(leader, "existing")
	e.replaced(old, begun)
}
