package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/pictures"
)

const changesFile = "changes.json" // beside the picture

// standardChange is a change that protocols are compared by. It has room for a dead voter that stays.
type standardChange struct {
	name    string
	members int
	add     int
	remove  func(c *changing) *cluster.Member // nil: none
}

var standardChanges = []standardChange{
	{"add one to 3", 3, 1, nil},
	{"remove one of 5", 5, 0, (*changing).follower},
	{"remove the leader of 5", 5, 0, (*changing).leading},
	{"replace one of 3", 3, 1, (*changing).follower},
	{"from 3 to 5", 3, 2, nil},
}

// protocolNames are the ways to make a change.
var protocolNames = []string{"single", "joint", "joint-early", "activate", "apply"}

// protocols makes the same changes by each protocol, on real members with a way between them, while clients write.
func protocols(f *flags) func() ([]trial, error) {
	way := wayFlag(f)
	names := f.choices("protocols", strings.Join(protocolNames, ","), "which protocols", protocolNames)
	only := f.text("only", "", "only changes with this text in their name")
	return func() (all []trial, err error) {
		for _, change := range standardChanges {
			if !strings.Contains(change.name, *only) {
				continue
			}
			for _, dead := range []bool{false, true} {
				for _, protocol := range *names {
					all = append(all, changeTrial(change, protocol, dead, *way))
				}
			}
		}
		return all, nil
	}
}

func wayFlag(f *flags) *time.Duration {
	return f.duration("way", "25ms", "how long a message between two members takes: half a round trip", 1)
}

func changeTrial(change standardChange, protocol string, dead bool, way time.Duration) trial {
	detail := pictures.Trial{Change: change.name, Protocol: protocol, Dead: dead}
	name := fmt.Sprintf("%s by %s", change.name, protocol)
	if dead {
		name = fmt.Sprintf("%s, one dead, by %s", change.name, protocol)
	}
	return trial{name: name, on: cluster.Conditions{Members: change.members, Flags: []string{"--peer-delay=" + way.String()}},
		do: func(ctx context.Context, b *bed) ([]figures.Row, error) {
			c := changing{cluster: b.Cluster, change: change, protocol: protocol, dead: dead}
			if err := c.measure(ctx); err != nil {
				return nil, err
			}
			f := figures.NewRow(name)
			f.Set(figures.DecidedMillis, figures.Millis(c.decided.Sub(c.begun)))
			f.Set(figures.SettledMillis, figures.Millis(c.settled.Sub(c.begun)))
			f.Set(figures.PauseMillis, figures.Millis(c.pause))
			f.Set(figures.MedianMillis, figures.Millis(quantile(c.latencies, 0.5)))
			f.Set(figures.P99Millis, figures.Millis(quantile(c.latencies, 0.99)))
			f.Set(figures.Failures, float64(c.failed))
			f.Detail = detail
			return []figures.Row{f}, nil
		}}
}

func changeFlags(f *flags) func(e *experiment) error {
	out := f.place("out", "a directory that gets the picture and "+changesFile+"; empty: neither is written", true)
	from := f.place("from", "draw what such a file says, and measure nothing", false)
	way := wayFlag(f)
	return func(e *experiment) error {
		write := func(changes *pictures.Changes) error {
			if *out == "" {
				return nil
			}
			return writePictures(*out, map[string][]byte{"changes.svg": changes.Draw()}, changesFile, changes.Write)
		}
		e.run = func(ctx context.Context) error {
			version, err := cluster.Version(ctx, e.servers[0])
			if err != nil {
				return err
			}
			rows, wrong := e.measure(ctx)
			changes := &pictures.Changes{Date: time.Now().UTC().Format("2 January 2006"), Version: version,
				Machine: cluster.Machine(), Command: e.command, RoundTripMillis: figures.Millis(2 * *way),
				Trials: medians(rows)}
			wrong = errors.Join(wrong, changes.Table(os.Stdout), e.record(ctx, rows))
			if wrong != nil {
				return wrong // a picture lacks nothing
			}
			return write(changes)
		}
		if *from != "" {
			e.idle, e.run = true, func(context.Context) error {
				changes, err := readResults(*from, pictures.ReadChanges)
				if err != nil {
					return err
				}
				return write(changes)
			}
		}
		return nil
	}
}

// medians are those of all rounds, in the order of the trials.
func medians(rows []figures.Row) (all []pictures.Trial) {
	var names []string
	for i := range rows {
		if !slices.Contains(names, rows[i].Workload) {
			names = append(names, rows[i].Workload)
			all = append(all, rows[i].Detail.(pictures.Trial))
		}
	}
	for i, name := range names {
		of := func(k figures.Kind) float64 {
			var values []float64
			for j := range rows {
				if rows[j].Workload == name {
					values = append(values, rows[j].Values[k])
				}
			}
			return figures.Median(values)
		}
		all[i].DecidedMillis, all[i].SettledMillis, all[i].PauseMillis = of(figures.DecidedMillis), of(figures.SettledMillis),
			of(figures.PauseMillis)
		all[i].MedianMillis, all[i].P99Millis, all[i].Failed = of(figures.MedianMillis), of(figures.P99Millis),
			of(figures.Failures)
	}
	return all
}

// changing is one change of one cluster.
type changing struct {
	change   standardChange
	protocol string
	dead     bool
	cluster  *cluster.Cluster
	leader   *cluster.Member

	mu     sync.Mutex           // of what is told of the job, the only one of the cluster
	phases map[string]time.Time // when a member told it first; the last time that a phase began, of a job of several steps
	last   string               // that a member told of the job
	over   chan error           // gets the end of the job
	// awaited is closed when newcomers are in the configuration, and the job waits for their processes.
	awaited chan struct{}

	begun, decided, settled time.Time
	pause                   time.Duration
	latencies               []time.Duration // of puts that began during the change or ended then
	failed                  int             // puts of that time
}

// put is a put of the load beside a change.
type put struct {
	begun, ended time.Time
	failed       bool
}

func (c *changing) leading() *cluster.Member { return c.leader }

// follower is one that does not lead, and another one than that which dies.
func (c *changing) follower() *cluster.Member {
	for _, m := range c.cluster.Members {
		if m != c.leader {
			return m
		}
	}
	return nil
}

// dies is a voter that stays, does not lead, and is removed by no change.
func (c *changing) dies() *cluster.Member {
	var last *cluster.Member
	for _, m := range c.cluster.Members[:c.change.members] {
		if m != c.leader {
			last = m
		}
	}
	return last
}

func (c *changing) measure(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	c.phases, c.over, c.awaited = map[string]time.Time{}, make(chan error, 1), make(chan struct{})
	if c.leader, err = c.cluster.Leader(ctx); err != nil {
		return err
	}
	if err := load.Fill(ctx, c.cluster, load.KeyCount/100, load.KeyAt); err != nil {
		return err
	}
	cluster.Pause(ctx, siteSettles) // members measure how far they are from each other
	spec, newcomers, stay, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	var working sync.WaitGroup
	ending, end := context.WithCancel(ctx)
	defer working.Wait()
	defer end()
	var clients []*clientv3.Client
	for _, m := range stay {
		client, err := cluster.Connect(m.ClientAddr)
		if err != nil {
			return err
		}
		defer client.Close()
		native := quoratepb.NewMembershipClient(client.ActiveConnection())
		watch, err := native.Watch(ending, &quoratepb.WatchRequest{IntervalMs: 1})
		if err != nil {
			return err
		}
		working.Go(func() { c.watch(watch) })
		clients = append(clients, client)
	}
	var puts []put
	working.Go(func() { puts = writeAlways(ending, clients) })
	cluster.Pause(ctx, time.Second)
	err = c.make(ctx, clients[0], spec, newcomers)
	cluster.Pause(ctx, time.Second)
	end()
	working.Wait()
	if err != nil {
		return err
	}
	return c.judge(puts)
}

// prepare says what is to be changed, and kills who has to be dead.
func (c *changing) prepare(ctx context.Context) (spec *quoratepb.ChangeSpec, newcomers, stay []*cluster.Member, err error) {
	spec = &quoratepb.ChangeSpec{Protocol: c.protocol}
	var removed, dead *cluster.Member
	if c.change.remove != nil {
		removed = c.change.remove(c)
		spec.Remove = []uint64{removed.ID}
	}
	if c.dead {
		dead = c.dies()
		dead.Signal(syscall.SIGKILL)
		cluster.Pause(ctx, time.Second) // the leader notices
	}
	for range c.change.add {
		m, err := c.cluster.Newcomer()
		if err != nil {
			return nil, nil, nil, err
		}
		newcomers = append(newcomers, m)
		spec.Add = append(spec.Add, &quoratepb.Newcomer{Name: m.Name, PeerUrls: []string{m.PeerURL()}})
	}
	for _, m := range c.cluster.Members {
		if m != dead && m != removed {
			stay = append(stay, m)
		}
	}
	return spec, newcomers, stay, nil
}

// make has a job make the change, starts the newcomers when it waits for them, and returns when it has ended.
func (c *changing) make(
	ctx context.Context, by *clientv3.Client, spec *quoratepb.ChangeSpec, newcomers []*cluster.Member,
) error {
	_, err := quoratepb.NewMembershipClient(by.ActiveConnection()).Start(ctx, &quoratepb.StartRequest{Spec: spec})
	if err != nil {
		return err
	}
	if len(newcomers) > 0 {
		select {
		case <-c.awaited:
		case err := <-c.over:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.cluster.Members = append(c.cluster.Members, newcomers...)
	for _, m := range newcomers {
		if err := c.cluster.Launch(m); err != nil {
			return err
		}
	}
	select {
	case err = <-c.over:
		return err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("the job did not end: %s: %w", c.last, ctx.Err())
	}
}

// afterwards is how long after a change its puts still count.
const afterwards = 500 * time.Millisecond

// judge finds the times of the change, and what became of puts meanwhile. A job that was done in one look has no phase
// between.
func (c *changing) judge(puts []put) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.settled = c.phases["swap"], c.phases["done"]
	c.decided = c.settled
	if at, told := c.phases["decided"]; told {
		c.decided = at
	}
	if c.begun.IsZero() {
		return fmt.Errorf("no member told when the change began: %v", c.phases)
	}
	var acknowledged []time.Time
	for _, p := range puts {
		if !p.failed {
			acknowledged = append(acknowledged, p.ended)
		}
		switch {
		case p.ended.Before(c.begun) || p.begun.After(c.settled.Add(afterwards)):
		case p.failed:
			c.failed++
		default:
			c.latencies = append(c.latencies, p.ended.Sub(p.begun))
		}
	}
	c.pause = load.LongestGap(acknowledged, c.begun, c.settled.Add(afterwards))
	return nil
}

// watch notes when the job enters a phase.
func (c *changing) watch(events quoratepb.Membership_WatchClient) {
	for {
		event, err := events.Recv()
		if err != nil {
			return
		}
		now := time.Now()
		c.mu.Lock()
		for _, job := range event.Jobs {
			c.note(job, now)
		}
		c.mu.Unlock()
	}
}

func (c *changing) note(job *quoratepb.Job, now time.Time) {
	phase := job.Phase
	c.last = job.State + ", " + job.Phase + ": " + job.Message
	switch job.State {
	case "done":
		phase = "done"
	case "failed", "cancelled":
		select {
		case c.over <- fmt.Errorf("the job %s: %s", job.State, job.Message):
		default:
		}
		return
	}
	if _, noted := c.phases[phase]; noted && (phase != "decided" || c.phases["swap"].Before(c.phases[phase])) {
		return
	}
	c.phases[phase] = now
	if phase == "start" {
		close(c.awaited)
	}
	if phase == "done" {
		select {
		case c.over <- nil:
		default:
		}
	}
}

// writeAlways begins a put every few milliseconds, whatever becomes of the earlier ones, until ctx ends. It returns the puts
// that had ended by then.
func writeAlways(ctx context.Context, clients []*clientv3.Client) []put {
	const every, limit = 4 * time.Millisecond, 5 * time.Second
	var mu sync.Mutex
	var puts []put
	keys := load.NewChooser(0)
	load.Steadily(ctx, every, func(i int) func() {
		key, value := keys.Key(), keys.Value()
		return func() {
			limited, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			one := put{begun: time.Now()}
			_, err := clients[i%len(clients)].Put(limited, key, value)
			one.ended, one.failed = time.Now(), err != nil
			if err != nil && ctx.Err() != nil {
				return // the load ends, and no member refused
			}
			mu.Lock()
			puts = append(puts, one)
			mu.Unlock()
		}
	})
	return puts
}
