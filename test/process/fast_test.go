package process_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	winsAnEpoch = 40
	winsInAll   = 200
)

// TestFastPath_survives kills the leader of five members again and again, and at last all members at once, while each of
// them is written through on the fast path. A write that was acknowledged in one round trip is there at the revision that its
// caller was told.
func TestFastPath_survives(t *testing.T) {
	e := startVoters(t, 5, farApart)
	load := startFastLoad(t, e.nodes...)
	const kills = 5
	for epoch := range kills {
		load.await(winsAnEpoch, fmt.Sprint("before kill ", epoch+1))
		leader := e.leader()
		leader.kill()
		load.tell("killed the leader, " + leader.name)
		if epoch%2 == 1 {
			load.await(winsAnEpoch/4, fmt.Sprintf("while %s is down", leader.name))
		} else {
			last(faultPause(t, 600*time.Millisecond))
		}
		e.launch(leader, "existing")
	}
	load.await(winsAnEpoch, "before all are killed")
	for _, n := range e.nodes {
		signal(t, n, syscall.SIGKILL)
	}
	for _, n := range e.nodes {
		<-n.exited
	}
	for _, n := range e.nodes {
		e.launch(n, "existing")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
	load.tell("all are up again")
	load.await(winsAnEpoch, "after all were killed")
	load.tell("all have written")
	load.check(e.nodes...)
	if fast := load.routes(0, time.Hour)[routeFast]; fast <= winsInAll {
		t.Errorf("only %d writes were answered on the fast path", fast)
	}
	e.checkRecordsForgotten()
}

// TestFastPath_recovered loses the only two members that have the latest entries in their logs: the leader, whose way to the
// other three is long, and the proposer. Writes that were acknowledged meanwhile are left in the records of those three alone.
func TestFastPath_recovered(t *testing.T) {
	e := planVoters(t, 5, farApart)
	slow, proposer, rest := e.nodes[0], e.nodes[1], e.nodes[2:]
	slow.flags = []string{"--peer-delay=m2=3ms,m3=120ms,m4=120ms,m5=120ms"}
	e.found()
	e.lead(slow)
	load := startFastLoad(t)
	load.pause = time.Millisecond // one writer: nothing stands in its way
	load.through(proposer)
	load.await(winsAnEpoch, "before the two are killed")
	recovered := sumOf(t, "quorate_fast_recovered_total", rest...)
	signal(t, slow, syscall.SIGKILL)
	signal(t, proposer, syscall.SIGKILL)
	<-slow.exited
	<-proposer.exited
	load.end()
	load.check(rest...)
	recovered = sumOf(t, "quorate_fast_recovered_total", rest...) - recovered
	load.tell(fmt.Sprint(recovered, " records were put into the log"))
	if recovered == 0 {
		t.Error("nothing was recovered from records: this test proves nothing")
	}
	e.launch(slow, "existing")
	e.launch(proposer, "existing")
	e.waitReady(slow)
	e.waitReady(proposer)
	load.check(e.nodes...)
	e.checkRecordsForgotten()
}

// TestFastPath_aborted stops a proposer while others hold what it proposes and its leader, to which the way is long, has not
// heard of it. The leader gives it up for all; the proposer, awake again, proposes the same anew, and its clients see nothing.
func TestFastPath_aborted(t *testing.T) {
	e := planVoters(t, 5, farApart)
	leader, proposer := e.nodes[0], e.nodes[1]
	proposer.flags = []string{"--peer-delay=m1=120ms,m3=3ms,m4=3ms,m5=3ms"}
	e.found()
	e.lead(leader)
	load := startFastLoad(t)
	load.pause = time.Millisecond
	for range 3 {
		load.through(proposer)
	}
	aborted := func() float64 { return sumOf(t, "quorate_fast_aborted_total", leader) }
	const tries = 4 // a process that is stopped while none of its writes is on its way leaves nothing behind
	var stopped time.Duration
	for try := 1; ; try++ {
		load.await(1, "before the proposer is stopped")
		last(40 * time.Millisecond) // the next writes are with the others, and not with the leader
		before := aborted()
		stopped = time.Since(load.clock)
		signal(t, proposer, syscall.SIGSTOP)
		if within(patience/2, func() bool { return aborted() > before }) {
			load.tell(fmt.Sprint(aborted()-before, " proposals were given up"))
			break
		}
		if try == tries {
			t.Fatalf("nothing was left behind and given up, %d times", tries)
		}
		signal(t, proposer, syscall.SIGCONT)
	}
	signal(t, proposer, syscall.SIGCONT)
	awake := time.Since(load.clock)
	load.await(1, "after the proposer was stopped")
	load.check(e.nodes...)
	if load.count(func(w *fastWrite) bool { return w.begun < stopped && w.ended > awake }) == 0 {
		t.Errorf("no write that was under way was answered: %v", load.record.Failures())
	}
	e.checkRecordsForgotten()
}

// within waits for a condition, at most for a time, and reports whether it was met.
func within(most time.Duration, met func() bool) bool {
	late, look := time.NewTimer(most), time.NewTicker(10*time.Millisecond)
	defer late.Stop()
	defer look.Stop()
	for !met() {
		select {
		case <-look.C:
		case <-late.C:
			return false
		}
	}
	return true
}

// lead makes n the leader.
func (e *elastic) lead(n *node) {
	e.t.Helper()
	id := e.status(n).Header.MemberId
	until(e.t, n.name+" leads", func(ctx context.Context) bool {
		leader := e.leader()
		if leader != n {
			_, _ = dialAlone(e.t, leader).MoveLeader(ctx, id)
		}
		return leader == n
	})
}

// checkRecordsForgotten waits until no member holds anything for others: all of it was applied.
func (e *elastic) checkRecordsForgotten() {
	e.t.Helper()
	until(e.t, "every record is forgotten", func(context.Context) bool {
		return sumOf(e.t, "quorate_fast_records_held", e.nodes...) == 0
	})
}

// TestFastPath_orderFaults shows the checker of the tests here what it must find.
func TestFastPath_orderFaults(t *testing.T) {
	at := func(revision int64, begun, ended time.Duration) fastWrite {
		return fastWrite{revision: revision, begun: begun, ended: ended}
	}
	for _, row := range []struct {
		name   string
		writes []fastWrite
		faults int
	}{
		{"one after the other", []fastWrite{at(2, 0, 1), at(3, 2, 3), at(9, 4, 5)}, 0},
		{"at the same time", []fastWrite{at(3, 0, 5), at(2, 1, 6), at(4, 5, 9)}, 0},
		{"one revision twice", []fastWrite{at(2, 0, 5), at(2, 1, 6)}, 1},
		{"the later one is smaller", []fastWrite{at(3, 0, 1), at(2, 2, 3)}, 1},
		{"one of two that are later is smaller", []fastWrite{at(5, 0, 1), at(6, 2, 3), at(4, 2, 9), at(3, 0, 9)}, 1},
	} {
		if got := orderFaults(row.writes); len(got) != row.faults {
			t.Errorf("%s: got %d faults, want %d: %v", row.name, len(got), row.faults, got)
		}
	}
}

// TestFastPath_replace replaces a member that runs by another one, by an operator's command, in the middle of fast writes.
func TestFastPath_replace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		leads bool
	}{{"the leader", true}, {"a follower", false}} {
		t.Run(row.name, func(t *testing.T) {
			e := startVoters(t, 5, farApart)
			load := startFastLoad(t, e.nodes...)
			load.await(winsAnEpoch, "before the change")
			if wins := sumOf(t, "quorate_fast_wins_total", e.nodes...); wins == 0 {
				t.Error("no member tells of a win before the change")
			}
			old := e.leader()
			if !row.leads {
				old = e.others(old)[0]
			}
			heir := e.node("m6")
			command := e.begin(e.member("replace", old.name, "--name=m6", "--peer-urls=http://"+heir.peer, "--yes")...)
			e.job("running", "start")
			load.await(winsAnEpoch/4, "while the newcomer is waited for")
			e.enter(heir, e.others(old)...)
			e.finish(command, 0, "done in ")
			e.leave(old)
			e.waitRemoved(old)
			e.checkVoters()
			e.waitReady(heir)
			before := sumOf(t, "quorate_fast_wins_total", e.nodes...)
			load.through(heir)
			load.await(winsAnEpoch, "after the change")
			load.check(e.nodes...)
			e.checkCounts(load, before, heir)
		})
	}
}

// checkCounts compares what the members tell of the fast path with what clients were told.
func (e *elastic) checkCounts(load *fastLoad, before float64, heir *node) {
	e.t.Helper()
	told := 0.0
	for _, n := range e.nodes {
		told += float64(load.count(func(w *fastWrite) bool { return w.through == n.name && w.route == routeFast }))
	}
	sum := func(name string) float64 { return sumOf(e.t, "quorate_fast_"+name, e.nodes...) }
	// The counters are shown once a tick; and a client may have given up before it was told.
	until(e.t, "the members count what clients were told", func(context.Context) bool { return sum("wins_total") >= told })
	if wins, tried := sum("wins_total"), sum("proposals_total"); wins <= before || wins > tried {
		e.t.Errorf("%v wins of %v proposals, %v before the change", wins, tried, before)
	}
	if sum("answers_total") == 0 || sum("records_total") == 0 {
		e.t.Errorf("%v answers and %v records of so many wins", sum("answers_total"), sum("records_total"))
	}
	if fastMetrics(e.t, heir)["quorate_fast_records_total"] == 0 {
		e.t.Error("the newcomer has never held a record")
	}
	e.checkRecordsForgotten()
}

// TestFastPath_settings asks which settings use the fast path: --fast-path=never never does, and auto only where it pays.
func TestFastPath_settings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		size  int
		flags []string
		fast  bool
	}{
		{"never", 5, []string{"--fast-path=never", farApart}, false},
		{"auto, members that are near", 5, []string{"--fast-path=auto"}, false},
		{"auto, three members that are far apart", 3, []string{"--fast-path=auto", farApart}, false},
		{"auto, five members that are far apart", 5, []string{"--fast-path=auto", farApart}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := startVoters(t, row.size, row.flags...)
			follower := e.others(e.leader())[0]
			load := startFastLoad(t)
			kv := pb.NewKVClient(dialAlone(t, follower).ActiveConnection())
			round := 0
			// How far away the others are is known for sure only after a while: the nearest of some measurements counts.
			until(t, fmt.Sprintf("offered to all at once: %t", row.fast), func(context.Context) bool {
				before, from := sumOf(t, "quorate_fast_proposals_total", e.nodes...), time.Since(load.clock)
				for i := range 20 {
					load.write(kv, follower.name, round, i)
				}
				round++
				last(100 * time.Millisecond) // a few ticks: the numbers are of the last one
				tried := sumOf(t, "quorate_fast_proposals_total", e.nodes...) > before
				won := load.routes(from, time.Hour)[routeFast] > 0
				return tried == row.fast && won == row.fast
			})
			load.check(e.nodes...)
			if row.flags[0] == "--fast-path=never" {
				for _, n := range e.nodes {
					checkUnused(t, n)
				}
			}
		})
	}
}

// checkUnused wants a member that has had nothing to do with the fast path since it started.
func checkUnused(t *testing.T, n *node) {
	t.Helper()
	for name, value := range fastMetrics(t, n) {
		if name != "quorate_proposals_inferred_total" && value != 0 {
			t.Errorf("%s: %s is %v, and nobody takes the fast path", n.name, name, value)
		}
	}
	if n := fastMetrics(t, n)["quorate_proposals_inferred_total"]; n != 0 {
		t.Errorf("%v proposals were inferred, and nobody counts", n)
	}
}

// TestFastPath_turnedOn gives data that was written without the fast path to members that take it, and then what they hold
// for each other to members that do not.
func TestFastPath_turnedOn(t *testing.T) {
	t.Parallel()
	e := startVoters(t, 5, farApart, "--fast-path=never")
	old := startFastLoad(t, e.nodes...)
	until(t, "writes", func(context.Context) bool { return old.count(func(*fastWrite) bool { return true }) > 50 })
	old.check(e.nodes...)
	for _, n := range e.nodes {
		checkUnused(t, n)
	}
	e.restart("--fast-path=always")
	load := startFastLoad(t)
	load.writers = old.writers // keys of their own
	for _, n := range e.nodes {
		load.through(n)
	}
	load.await(winsAnEpoch, "after it was turned on")
	e.restart("--fast-path=never")
	load.check(e.nodes...)
	old.check(e.nodes...)
	e.checkRecordsForgotten()
	client := dialAlone(t, e.nodes[0])
	if _, err := client.Put(context.Background(), "after", "all"); err != nil {
		t.Error(err)
	}
	if got, err := client.Get(context.Background(), "after", clientv3.WithCountOnly()); err != nil || got.Count != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// restart kills all members at once and starts them with another setting.
func (e *elastic) restart(flag string) {
	e.t.Helper()
	e.flags = append(e.flags, flag)
	for _, n := range e.nodes {
		signal(e.t, n, syscall.SIGKILL)
	}
	for _, n := range e.nodes {
		<-n.exited
		e.launch(n, "existing")
	}
	for _, n := range e.nodes {
		e.waitReady(n)
	}
}
