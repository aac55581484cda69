package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/test/history"
)

// runsBuild makes a member run a program from its next start on.
func runsBuild(n *node, binary string) { n.program = binary }

// moveTo restarts a member with another build: in the middle of its work, or as an operator would.
func (e *elastic) moveTo(n *node, binary string, random *rand.Rand) {
	e.t.Helper()
	if random.IntN(2) == 0 {
		n.kill()
	} else {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		<-n.exited
	}
	runsBuild(n, binary)
	e.launch(n, "existing")
	e.waitReady(n)
	e.waitPlan()
}

// waitPlan waits until an upgrade may go on.
func (e *elastic) waitPlan() {
	e.t.Helper()
	until(e.t, "the plan blocks nothing", func(ctx context.Context) bool {
		return exec.CommandContext(ctx, e.binary, e.upgrade("plan")...).Run() == nil
	})
}

func (e *elastic) upgrade(words ...string) []string {
	var endpoints []string
	for _, n := range e.nodes {
		endpoints = append(endpoints, n.client)
	}
	return append(append([]string{"upgrade"}, words...), "--endpoints="+strings.Join(endpoints, ","))
}

// nextInPlan is the member that the plan for a build names first, nil if none is left.
func (e *elastic) nextInPlan(build string) *node {
	e.t.Helper()
	var plan struct {
		Steps []struct{ Member, Role string }
	}
	if err := json.Unmarshal([]byte(e.quorate(0, e.upgrade("plan", "--to="+build, "-o", "json"))), &plan); err != nil {
		e.t.Fatal(err)
	}
	for i, step := range plan.Steps {
		if step.Role == "leader" && i < len(plan.Steps)-1 {
			e.t.Errorf("the leader is not the last one: %+v", plan.Steps)
		}
	}
	if len(plan.Steps) == 0 {
		return nil
	}
	return e.nodes[slices.IndexFunc(e.nodes, func(n *node) bool { return n.name == plan.Steps[0].Member })]
}

// upgradeStatus asks the cluster.
func (e *elastic) upgradeStatus() *quoratepb.UpgradeStatus {
	e.t.Helper()
	var status *quoratepb.UpgradeStatus
	until(e.t, "the status of the upgrade", func(ctx context.Context) bool {
		var err error
		status, err = quoratepb.NewUpgradeClient(e.client.ActiveConnection()).Status(ctx, &quoratepb.UpgradeStatusRequest{})
		return err == nil
	})
	return status
}

// awaitLevel waits until a feature level is active: a new cluster begins at the first one, and rises to that of its build, whatever
// the policy.
func (e *elastic) awaitLevel(want uint32) {
	e.t.Helper()
	until(e.t, fmt.Sprintf("level %d is active", want), func(context.Context) bool { return e.upgradeStatus().GetActive() == want })
}

// upgradeLoad is what clients do during an upgrade beside reads and writes: a watch, a lease that is kept alive, native clients
// and changes of users.
type upgradeLoad struct {
	e      *elastic
	cancel context.CancelFunc
	wait   sync.WaitGroup
	lease  clientv3.LeaseID
	native *counters

	mu     sync.Mutex
	events map[string]int64 // of each key, how many
	last   int64            // revision of the last event
	gaps   []string
}

func (e *elastic) startUpgradeLoad() *upgradeLoad {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &upgradeLoad{e: e, cancel: cancel, native: &counters{puts: map[string]int64{}}, events: map[string]int64{}}
	granted, err := e.client.Grant(ctx, 5)
	if err != nil {
		e.t.Fatal(err)
	}
	l.lease = granted.ID
	if _, err := e.client.Put(ctx, "alive", "", clientv3.WithLease(l.lease)); err != nil {
		e.t.Fatal(err)
	}
	kept, err := e.client.KeepAlive(ctx, l.lease)
	if err != nil {
		e.t.Fatal(err)
	}
	l.wait.Go(func() {
		for range kept {
		}
	})
	events := e.client.Watch(ctx, "put", clientv3.WithPrefix(), clientv3.WithRev(1))
	l.wait.Go(func() {
		for answer := range events {
			l.take(answer)
		}
	})
	for id := range 3 {
		client := e.connectNative()
		l.wait.Go(func() {
			defer client.Close()
			if id == 2 {
				l.native.swap(ctx, client)
			} else {
				l.native.put(ctx, client, fmt.Sprintf("put%d", id))
			}
		})
	}
	return l
}

func (l *upgradeLoad) take(answer clientv3.WatchResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := answer.Err(); err != nil {
		l.gaps = append(l.gaps, err.Error())
	}
	for _, event := range answer.Events {
		key := string(event.Kv.Key)
		l.events[key]++
		if event.Kv.ModRevision < l.last || event.Kv.Version != l.events[key] {
			l.gaps = append(l.gaps, fmt.Sprintf("%s version %d at %d, as the %d. event, after %d", key, event.Kv.Version,
				event.Kv.ModRevision, l.events[key], l.last))
		}
		l.last = event.Kv.ModRevision
	}
}

// end stops the load, and checks what its clients saw.
func (l *upgradeLoad) end() {
	l.e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := l.e.client.Get(ctx, "alive")
	if err != nil || len(got.Kvs) != 1 {
		l.e.t.Errorf("the key of a lease that was kept alive: %v, %v", got, err)
	}
	until(l.e.t, "the watch has as many events as there were writes", func(context.Context) bool {
		l.native.mu.Lock()
		defer l.native.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.native.puts) == 2 && l.events["put0"] > 0 && l.events["put1"] > 0
	})
	l.cancel()
	l.wait.Wait()
	l.native.check(l.e.t, l.e.cluster)
	if len(l.native.doubts)+len(l.native.failures)+len(l.gaps) > 0 {
		l.e.t.Errorf("in doubt: %v; failed: %v; gaps in the watch: %v", l.native.doubts, l.native.failures, l.gaps)
	}
}

// busy are the findings of members that lack processors and disks. All are on one machine, where no network makes a link slow.
var busy = []string{"DISK_SLOW", "DISK_HANGS", "MEMBER_STALLS", "HEARTBEATS_LATE", "STORE_STALLS", "APPLY_BEHIND", "LEADER_CHANGES",
	"CUT_OFF", "VOTER_BEHIND", "LEASES_STOOD", "LINK_SLOW"}

// awaitRise waits until the level has risen after its soak. On a machine that is too busy for its processes, a member rightly finds
// something wrong: then no time counts, the status names the finding, and the operator's word raises the level.
func (e *elastic) awaitRise() {
	e.t.Helper()
	found := ""
	until(e.t, "the level rises, or a finding keeps it down", func(context.Context) bool {
		status := e.upgradeStatus()
		found = status.GetPausedBy()
		return status.GetActive() == laterLevel || strings.Contains(found, " finds ")
	})
	if e.upgradeStatus().GetActive() < laterLevel {
		if !slices.ContainsFunc(busy, func(code string) bool { return strings.Contains(found, " finds "+code+":") }) {
			e.t.Errorf("no time counts, for what no busy machine makes: %s", found)
		}
		_ = exec.Command(e.binary, e.upgrade("finalize", "--yes")...).Run() // refused if the soak has ended meanwhile
	}
	e.awaitLevel(laterLevel)
}

// TestUpgrade_upAndDown upgrades three members under load to a build that knows a feature level more, and goes back, with crashes
// between any two steps; replaces a member in the middle; goes up again, and lets the level rise. The former build refuses then
// with a sentence that says what to do, and each member has the same contents.
func TestUpgrade_upAndDown(t *testing.T) {
	t.Parallel()
	u := beginUpgrade(t)
	u.up()
	u.replaceInTheMiddle()
	u.downgradeBegins()
	u.allTheWayBack()
	u.upAgainUntilItRises()
	u.formerIsRefused()
	u.end()
}

// upgradeStory is a cluster under load that goes from one build to the next and back. Its methods are the
// chapters, each of which begins where the last one ended.
type upgradeStory struct {
	*elastic
	next   string // file of the next build, which calls itself 9.9.0
	random *rand.Rand
	load   *upgradeLoad
	stop   func() *history.Recorder
}

func beginUpgrade(t *testing.T) *upgradeStory {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	u := &upgradeStory{next: anotherBinary(t, nextBuild), random: rand.New(rand.NewPCG(seed, 0))}
	u.elastic = startVoters(t, 3, "--level-policy=hold")
	u.use()
	for _, n := range u.nodes {
		u.waitPublished(n)
	}
	u.awaitLevel(ownLevel)
	u.stop, u.load = u.witness(2, u.nodes...), u.startUpgradeLoad()
	return u
}

// nextMember is the member that the plan names first, nil if none is left.
func (u *upgradeStory) nextMember() *node { return u.nextInPlan("9.9.0") }

// up moves two of three members to the next build.
func (u *upgradeStory) up() {
	u.t.Helper()
	u.quorate(0, u.upgrade("check", u.next), "ok  level", fmt.Sprintf("stays at level %d, and the former build may return", ownLevel),
		"ok  members")
	u.quorate(1, u.upgrade("check", u.binary), "run build")
	u.moveTo(u.nextMember(), u.next, u.random)
	u.quorate(0, u.upgrade("status"), fmt.Sprintf("level %d is held back by", laterLevel), "(build ", "the former build may return")
	u.moveTo(u.nextMember(), u.next, u.random)
}

// replaceInTheMiddle puts a newcomer with the next build into the place of the last member with the former one.
func (u *upgradeStory) replaceInTheMiddle() {
	u.t.Helper()
	former, heir := u.nextMember(), u.node("m4")
	runsBuild(heir, u.next)
	command := u.begin(u.member("replace", former.name, "--name=m4", "--peer-urls=http://"+heir.peer, "--yes")...)
	u.job("running", "start")
	former.kill()
	u.leave(former)
	u.enter(heir, u.nodes...)
	u.finish(command, 0, "done in ")
	u.checkVoters()
	u.quorate(0, u.upgrade("status"), fmt.Sprintf("all members know level %d", laterLevel), "policy hold")
}

// downgrade is etcdctl's command.
func (u *upgradeStory) downgrade(words ...string) []string {
	return append([]string{"etcdctl", "downgrade"}, append(words, "--endpoints="+u.nodes[0].client)...)
}

// downgradeBegins holds the level for the way back, by etcd's command. A command that changes the policy is refused, and is to be
// given again, where members change meanwhile: a newcomer tells its level after its job has ended.
func (u *upgradeStory) downgradeBegins() {
	u.t.Helper()
	u.awaitSaid(0, u.upgrade("policy", "soak=24h"), "policy soak=24h")
	u.quorate(1, u.downgrade("validate", "3.6"), "no etcd reads the data",
		fmt.Sprintf("until level %d rises by the policy soak=24h", laterLevel))
	u.quorate(0, u.downgrade("validate", "1.1"), "success")
	u.awaitSaid(0, u.downgrade("enable", "1.1"), "success")
	u.quorate(1, u.downgrade("enable", "1.1"), "downgrade job in progress")
	u.quorate(0, u.upgrade("status"), "policy hold", "a downgrade to release 1.1 is under way", "policy soak=24h comes back")
	if info := u.status(u.nodes[0]).DowngradeInfo; !info.Enabled || info.TargetVersion != "1.1.0" {
		u.t.Errorf("etcd's status tells of the downgrade: %v", info)
	}
}

// allTheWayBack moves all members to the former build: that ends the downgrade.
func (u *upgradeStory) allTheWayBack() {
	u.t.Helper()
	for _, n := range slices.Clone(u.nodes) {
		u.moveTo(n, u.binary, u.random)
	}
	if s := u.upgradeStatus(); s.GetActive() != ownLevel || s.GetCommon() != ownLevel {
		u.t.Errorf("all the way back: %v", s)
	}
	until(u.t, "the policy from before the downgrade comes back", func(context.Context) bool {
		s := u.upgradeStatus()
		return s.GetDowngradeTo() == "" && s.GetPolicy() == "soak=24h"
	})
	u.quorate(0, u.downgrade("cancel"), "success") // nothing is left to cancel
	u.awaitSaid(0, u.upgrade("hold"), "policy hold")
}

// upAgainUntilItRises moves all members to the next build, and lets the level rise by a soak.
func (u *upgradeStory) upAgainUntilItRises() {
	u.t.Helper()
	for n := u.nextMember(); n != nil; n = u.nextMember() {
		u.moveTo(n, u.next, u.random)
	}
	u.quorate(1, u.upgrade("finalize"), "cannot return", "nothing was changed")
	u.awaitSaid(0, u.upgrade("policy", "soak=2s"), "policy soak=2s")
	u.awaitRise()
	u.quorate(1, u.upgrade("check", u.binary), fmt.Sprintf("knows %d at most: it would refuse to start", ownLevel))
	u.quorate(1, u.downgrade("enable", "1.1"), fmt.Sprintf("the cluster has risen to %d: it cannot return", laterLevel), "quorate mirror")
}

// formerIsRefused starts the former build on the directory of a member, and then the next one again.
func (u *upgradeStory) formerIsRefused() {
	u.t.Helper()
	back := u.others(u.leader())[0]
	back.kill()
	runsBuild(back, u.binary)
	u.launch(back, "existing")
	select {
	case <-back.exited:
	case <-time.After(patience):
		u.t.Fatal("the former build goes on at a level that it does not know")
	}
	tooLow := fmt.Sprintf("feature level %d, and this build knows %d at most", laterLevel, ownLevel)
	if end := tail(back.log, 2000); !strings.Contains(end, tooLow) {
		u.t.Errorf("the former build says: %s", end)
	}
	runsBuild(back, u.next)
	u.launch(back, "existing")
	u.waitReady(back)
}

// end stops the load, and compares what clients saw and what members have.
func (u *upgradeStory) end() {
	u.t.Helper()
	u.load.end()
	u.stop()
	u.checkHashes()
}

// TestUpgrade_tableClaimsTooLittle runs one member with a build that executes a command otherwise and has no level for that. The
// comparison of members finds it: the members that agree go on, and the other one serves nothing.
func TestUpgrade_tableClaimsTooLittle(t *testing.T) {
	t.Parallel()
	other := anotherBinary(t, nextBuild)
	e := startVoters(t, 3, "--compact-hash-check-time=1s")
	odd := e.others(e.leader())[0]
	odd.kill()
	runsBuild(odd, other)
	e.launch(odd, "existing")
	e.waitReady(odd)
	id := e.status(odd).Header.MemberId
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := e.client.Grant(ctx, 60); err != nil { // one that both grant
		t.Fatal(err)
	}
	if ids, err := e.corrupt(ctx); err != nil || len(ids) > 0 {
		t.Fatalf("corrupt before they differ: %v, %v", ids, err)
	}
	client := e.quiet(e.leader())
	defer client.Close()
	if _, err := client.Grant(ctx, otherTTL); err != nil {
		t.Fatal(err)
	}
	until(t, "the alarm", func(ctx context.Context) bool {
		ids, err := e.corrupt(ctx)
		return err == nil && slices.Equal(ids, []uint64{id})
	})
	e.checkServes(e.leader())
}
