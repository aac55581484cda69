package process_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// healthyTime is how long `make doctor-healthy` runs.
var healthyTime = flag.Duration("doctor-healthy", 0, "how long TestDoctor_healthyDay goes on; 0: each operation once")

const (
	// healthyRest is between two operations of a long run. A round has nine of them, so that 30 minutes are three rounds, and four
	// leaders take over in ten minutes: a fifth is LEADER_CHANGES.
	healthyRest = 66 * time.Second
	// weatherPast is how long before a verdict the machine's weather counts: a window, and the time of a question.
	weatherPast = 75 * time.Second
	// squall is how late a timer, or a sync, is on a machine that has no processor, or no disk, for a process: the heartbeat
	// interval of the members.
	squall = 100 * time.Millisecond
	// leastSqualls within weatherPast say that the machine is too busy.
	leastSqualls = 10
)

// weather tells how late timers and syncs of this process are, which runs beside the members and does nothing else for them: what
// members lack because other programs have it, this process lacks, too.
type weather struct {
	mu      sync.Mutex
	squalls []time.Time // of when a timer or a sync was late, once for each squall that it lasted
	worst   time.Duration
}

// watch looks at timers and at syncs of a file until ctx ends.
func (w *weather) watch(ctx context.Context, wait *sync.WaitGroup, file *os.File) {
	const each = 10 * time.Millisecond
	wait.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			last(each)
			w.note(time.Since(begun) - each)
		}
	})
	wait.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			_, _ = file.WriteAt([]byte("x"), 0)
			_ = file.Sync()
			w.note(time.Since(begun))
			last(5 * each)
		}
	})
}

func (w *weather) note(late time.Duration) {
	if late < squall {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worst = max(w.worst, late)
	for range min(int(late/squall), leastSqualls) {
		w.squalls = append(w.squalls, time.Now())
	}
}

// rough reports whether the machine was too busy before a moment.
func (w *weather) rough(at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, squall := range w.squalls {
		if at.Sub(squall) < weatherPast {
			n++
		}
	}
	return n >= leastSqualls
}

// day is a healthy cluster: clients work, and an operator does what operators do, and asks the doctor all the time.
type day struct {
	*elastic
	sky      weather
	replaced int // members

	mu       sync.Mutex
	doing    string   // the operation of now
	away     string   // the member that is stopped, or starts, by the operator's will
	asked    []string // the endpoints of now
	answers  int
	unwell   []string
	found    map[doctor.Code]int // of unwell
	excused  map[doctor.Code]int // of a machine that was too busy
	fromAway map[doctor.Code]int // of the member that was away
}

// set notes what the operator does now.
func (d *day) set(doing, away string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doing, d.away, d.asked = doing, away, nil
	for _, n := range d.nodes {
		d.asked = append(d.asked, n.client)
	}
	d.t.Logf("%s: %s", time.Now().Format(time.TimeOnly), doing)
}

// moment is what the operator does.
func (d *day) moment() (doing, away string, endpoints []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.doing, d.away, slices.Clone(d.asked)
}

// ask asks the doctor until ctx ends.
func (d *day) ask(ctx context.Context, mutes string) {
	for ctx.Err() == nil {
		_, before, endpoints := d.moment()
		v, err := askDoctor(d.binary, mutes, endpoints)
		doing, after, _ := d.moment()
		d.take(&v, err, doing, []string{before, after})
		last(250 * time.Millisecond)
	}
}

// await waits for so many more verdicts.
func (d *day) await(more int) {
	d.t.Helper()
	answers := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.answers
	}
	begun := answers()
	until(d.t, fmt.Sprint(more, " more verdicts"), func(context.Context) bool { return answers() >= begun+more })
}

// take judges a verdict. Nothing above advice may be found, but for what docs/doctor.md says: that a member is away which the operator
// has stopped, with what follows from that, and what members lack on a machine that is too busy.
func (d *day) take(v *verdict, err error, doing string, away []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers++
	if err != nil {
		d.unwell = append(d.unwell, fmt.Sprintf("%s: no verdict: %v", doing, err))
		return
	}
	for _, f := range v.Findings {
		gone := f.Code == doctor.MemberDown && len(f.Members) == 1 && f.Members[0] != "" && slices.Contains(away, f.Members[0])
		switch {
		case f.Severity >= doctor.Advice:
		case gone, f.Because == doctor.MemberDown && d.fromAway[doctor.MemberDown] > 0 && away[0]+away[1] != "":
			d.fromAway[f.Code]++
		case slices.Contains(busy, string(f.Code)) && d.sky.rough(time.Now()):
			d.excused[f.Code]++
		default:
			if d.found[f.Code]++; d.found[f.Code] <= 3 {
				d.unwell = append(d.unwell, fmt.Sprintf("%s: %s: %s: %v", time.Now().Format(time.TimeOnly), doing, f.Code, v))
			}
		}
	}
}

// restart stops a member as operators do, starts it by a build, and waits until the next one may follow.
func (d *day) restart(n *node, binary, why string) {
	d.t.Helper()
	d.set(why+" "+n.name, n.name)
	signal(d.t, n, syscall.SIGTERM)
	<-n.exited
	runsBuild(n, binary)
	d.launch(n, "existing")
	d.waitReady(n)
	d.waitPlan()
	d.set("after "+why+" "+n.name, "")
}

// upgrade restarts all members with a build, in the order of the plan.
func (d *day) upgradeTo(binary, version string, rest func()) {
	d.t.Helper()
	for range d.nodes {
		n := d.nextInPlan(version)
		if n == nil {
			return
		}
		d.restart(n, binary, "upgrade to "+version+" of")
		rest()
	}
}

// replace puts a new member in the place of one that runs.
func (d *day) replace(old *node, name, binary string) {
	d.t.Helper()
	d.set("replace "+old.name+" by "+name, "")
	heir := d.node(name)
	runsBuild(heir, binary)
	command := d.begin(d.member("replace", old.name, "--name="+name, "--peer-urls=http://"+heir.peer, "--yes")...)
	// A newcomer that is started before its plan was accepted joins by itself, and the plan is of other members then.
	d.replaced++
	d.jobs("the plan is accepted", d.replaced, func(jobs []*quoratepb.Job) bool {
		return jobs[len(jobs)-1].State == "running"
	})
	d.enter(heir, d.nodes...)
	d.finish(command, 0, "done in ")
	d.leave(old)
	select {
	case <-old.exited:
	case <-time.After(patience):
		d.t.Errorf("%s was replaced and goes on", old.name)
	}
	d.set("after replace "+old.name+" by "+name, "")
}

// work loads the cluster as clients do that have other things to do, too.
func (d *day) work(ctx context.Context, wait *sync.WaitGroup) (acked, events *atomic.Int64) {
	acked, events = &atomic.Int64{}, &atomic.Int64{}
	for id := range 4 {
		wait.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				once, cancel := context.WithTimeout(ctx, 5*time.Second)
				key := fmt.Sprintf("/day/%d/%d", id, i%500)
				if _, err := d.client.Put(once, key, strings.Repeat("v", 200)); err == nil {
					acked.Add(1)
				}
				_, _ = d.client.Get(once, key)
				if i%50 == 0 {
					_, _ = d.client.Get(once, "/day/", clientv3.WithPrefix(), clientv3.WithLimit(200))
					if granted, err := d.client.Grant(once, 30); err == nil {
						_, _ = d.client.Put(once, fmt.Sprintf("/leased/%d", id), "v", clientv3.WithLease(granted.ID))
						_, _ = d.client.KeepAliveOnce(once, granted.ID)
						_, _ = d.client.Revoke(once, granted.ID)
					}
				}
				cancel()
				last(20 * time.Millisecond)
			}
		})
	}
	wait.Go(func() {
		for answer := range d.client.Watch(ctx, "/day/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
			events.Add(int64(len(answer.Events)))
		}
	})
	return acked, events
}

// TestDoctor_healthyDay wants nothing above advice of a cluster that works, while its leader changes, its members are restarted
// one after the other, upgraded to the next build and taken back, and replaced. `make doctor-healthy` goes on for 30 minutes.
func TestDoctor_healthyDay(t *testing.T) {
	t.Parallel()
	next := anotherBinary(t, nextBuild)
	e := startVoters(t, 3, "--level-policy=hold", "--heartbeat-interval=100", "--election-timeout=1000", "--fast-path=auto")
	for _, n := range e.nodes {
		e.waitPublished(n)
	}
	d := &day{elastic: e, excused: map[doctor.Code]int{}, found: map[doctor.Code]int{}, fromAway: map[doctor.Code]int{}}
	file, err := os.Create(filepath.Join(t.TempDir(), "weather"))
	if err != nil {
		t.Fatal(err)
	}
	d.set("begin", "")
	begun := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	end := sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		_ = file.Close()
	})
	t.Cleanup(end)
	d.sky.watch(ctx, &wait, file)
	acked, events := d.work(ctx, &wait)
	mutes := filepath.Join(t.TempDir(), "mutes")
	wait.Go(func() { d.ask(ctx, mutes) })

	rest := func() {
		if *healthyTime > 0 {
			last(healthyRest)
		}
		d.await(3)
	}
	for round := 0; round == 0 || time.Since(begun) < *healthyTime; round++ {
		rest()
		d.set("transfer", "")
		d.cluster.moveLeader()
		rest()
		d.upgradeTo(next, "9.9.0", rest)
		d.replace(d.leader(), fmt.Sprintf("m%d", 4+round), next)
		rest()
		leader := d.leader()
		for _, n := range append(d.others(leader), leader) {
			d.restart(n, d.binary, "way back of")
			rest()
		}
	}
	end()
	d.report(acked.Load(), events.Load(), time.Since(begun))
}

// report fails the test for what was found, and for a day on which too little happened.
func (d *day) report(acked, events int64, took time.Duration) {
	d.t.Logf("%d verdicts in %v; %d writes, %d events; of members that were away: %v; on a machine that was too busy: %v; squalls: %d, "+
		"the worst of %v", d.answers, took, acked, events, d.fromAway, d.excused, len(d.sky.squalls), d.sky.worst)
	for _, text := range d.unwell[:min(len(d.unwell), 50)] {
		d.t.Error(text)
	}
	if len(d.unwell) > 0 {
		d.t.Errorf("found in so many verdicts: %v", d.found)
	}
	if d.answers < 10 || acked < 100 || events < acked/2 {
		d.t.Errorf("%d verdicts, %d writes and %d events are too few to say anything", d.answers, acked, events)
	}
}
